"""The pages, drawn by NiceGUI. Needs the extra `[app]`."""
