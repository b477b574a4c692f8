package privamp;

import java.io.Serializable;
import java.nio.charset.StandardCharsets;
import javax.crypto.Cipher;
import javax.crypto.spec.SecretKeySpec;
import org.apache.spark.sql.api.java.UDF1;

/**
 * Whether the keyed number of an id lies below a public bound: privamp.chance.keyed for Spark's JVM, for ids that are
 * longs or text. Spark's own compiler (Janino) compiles it, so it is written without generics.
 *
 * <p>It never fails on an id: one that it cannot code is below, so that Python decides about it. Before its first id
 * every thread computes known answers of the keyed function.
 */
public final class KeyedBelow implements UDF1, Serializable {
    private static final long serialVersionUID = 1L;

    private final byte[] secret;
    private final long bound; // unsigned
    private final Object[] knownIds;
    private final long[] knownNumbers;
    private transient ThreadLocal coders;

    public KeyedBelow(byte[] secret, long bound, Object[] knownIds, long[] knownNumbers) {
        this.secret = secret;
        this.bound = bound;
        this.knownIds = knownIds;
        this.knownNumbers = knownNumbers;
    }

    public Object call(Object id) throws Exception {
        if (id instanceof Long && ((Long) id).longValue() >= 0) {
            return below(coder().ofNumber(((Long) id).longValue()));
        }
        if (id instanceof String && isPlain((String) id)) {
            return below(coder().ofText((String) id));
        }
        return Boolean.TRUE;
    }

    /** Python refuses texts that end with NUL, and those that are not UTF-8, in which U+FFFD stands for some bytes. */
    private static boolean isPlain(String text) {
        return text.indexOf('\uFFFD') < 0 && !text.endsWith("\0");
    }

    private Boolean below(long number) {
        return Boolean.valueOf(number + Long.MIN_VALUE < bound + Long.MIN_VALUE);
    }

    private Coder coder() throws Exception {
        if (coders == null) {
            coders = new ThreadLocal();
        }
        Coder found = (Coder) coders.get();
        if (found == null) {
            found = checked(new Coder(secret));
            coders.set(found);
        }
        return found;
    }

    private Coder checked(Coder coder) throws Exception {
        for (int k = 0; k < knownIds.length; k++) {
            Object id = knownIds[k];
            long found = id instanceof String ? coder.ofText((String) id) : coder.ofNumber(((Number) id).longValue());
            if (found != knownNumbers[k]) {
                throw new IllegalStateException("the keyed function gives other numbers in this JVM than in Python");
            }
        }
        return coder;
    }

    /** AES-256 of one block (id, 0), or chained over (0, length) and the blocks of a text. */
    private static final class Coder {
        private final Cipher cipher;
        private final byte[] block = new byte[16];
        private final byte[] coded = new byte[16];

        Coder(byte[] secret) throws Exception {
            cipher = Cipher.getInstance("AES/ECB/NoPadding");
            cipher.init(Cipher.ENCRYPT_MODE, new SecretKeySpec(secret, "AES"));
        }

        long ofNumber(long id) throws Exception {
            write(id, 0);
            write(0L, 8);
            cipher.update(block, 0, 16, coded, 0);
            return first();
        }

        long ofText(String id) throws Exception {
            byte[] text = id.getBytes(StandardCharsets.UTF_8);
            write(0L, 0);
            write((long) text.length, 8);
            cipher.update(block, 0, 16, coded, 0);
            for (int at = 0; at < text.length; at += 16) {
                System.arraycopy(coded, 0, block, 0, 16);
                for (int k = 0; k < 16 && at + k < text.length; k++) {
                    block[k] ^= text[at + k];
                }
                cipher.update(block, 0, 16, coded, 0);
            }
            return first();
        }

        private void write(long word, int at) {
            for (int k = 0; k < 8; k++) {
                block[at + k] = (byte) (word >>> (8 * k));
            }
        }

        private long first() {
            long word = 0;
            for (int k = 7; k >= 0; k--) {
                word = (word << 8) | (coded[k] & 0xffL);
            }
            return word;
        }
    }
}
