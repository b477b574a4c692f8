"""Jobs that people do on samples, from the draw to the released answer."""
