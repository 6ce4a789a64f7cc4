// SPDX-License-Identifier: Apache-2.0
// The JDK's AES/ECB/PKCS5Padding, timed in rounds on request: the other half of tests/bench/jdk.
import java.io.BufferedReader;
import java.io.InputStreamReader;
import javax.crypto.Cipher;
import javax.crypto.spec.SecretKeySpec;

/**
 * Reads three lines: key and text in hexadecimal, and how many messages a batch has. Prints the ciphertext, then, for
 * each further line, how many nanoseconds a message took in one round. Arguments: milliseconds of warming up and of a
 * round.
 */
final class JdkEcb {
    private final Cipher cipher;
    private final byte[][] texts;
    private final byte[][] outputs;

    private JdkEcb(byte[] key, byte[] text, int batch) throws Exception {
        cipher = Cipher.getInstance("AES/ECB/PKCS5Padding");
        cipher.init(Cipher.ENCRYPT_MODE, new SecretKeySpec(key, "AES"));
        texts = new byte[batch][];
        outputs = new byte[batch][];
        for (int i = 0; i < batch; i++) {
            texts[i] = text.clone();
            outputs[i] = new byte[cipher.getOutputSize(text.length)];
        }
    }

    /** As many batches as fit into a time; the nanoseconds of a message. */
    private double round(long timeNs) throws Exception {
        long start = System.nanoTime();
        long messages = 0;
        long now;
        do {
            for (int i = 0; i < texts.length; i++) {
                cipher.doFinal(texts[i], 0, texts[i].length, outputs[i], 0);
            }
            messages += texts.length;
            now = System.nanoTime();
        } while (now - start < timeNs);
        return (double) (now - start) / messages;
    }

    private static byte[] bytes(String hex) {
        byte[] result = new byte[hex.length() / 2];
        for (int i = 0; i < result.length; i++) {
            result[i] = (byte) Integer.parseInt(hex.substring(2 * i, 2 * i + 2), 16);
        }
        return result;
    }

    private static String hex(byte[] bytes) {
        StringBuilder result = new StringBuilder();
        for (byte b : bytes) {
            result.append(Character.forDigit(b >> 4 & 15, 16)).append(Character.forDigit(b & 15, 16));
        }
        return result.toString();
    }

    public static void main(String[] arguments) throws Exception {
        long warmUpNs = 1_000_000 * Long.parseLong(arguments[0]);
        long roundNs = 1_000_000 * Long.parseLong(arguments[1]);
        BufferedReader input = new BufferedReader(new InputStreamReader(System.in));
        byte[] key = bytes(input.readLine());
        byte[] text = bytes(input.readLine());
        JdkEcb bench = new JdkEcb(key, text, Integer.parseInt(input.readLine()));
        bench.round(warmUpNs);
        System.out.println(hex(bench.outputs[0]));
        while (input.readLine() != null) {
            System.out.println(bench.round(roundNs));
        }
    }
}
