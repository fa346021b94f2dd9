import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.concurrent.ThreadLocalRandom;

/** Clients that ask, wait for the answer, and ask again: the same loop as closed_loop.py, in Java. */
final class Load {
    static final int KEYS = 100_000;
    static final int NAMES = 20_000;
    static final int FILL_BATCH = 5_000;
    static final long OPENING = 1_000;
    private static final double WARM_UP = 0.3;
    private static final double LATEST = 30.0;

    interface Operation {
        void run(Random chance) throws Exception;
    }

    /** An operation that was refused because of others, and may be tried again. */
    static final class Conflict extends Exception {
        Conflict(Throwable cause) {
            super(cause);
        }
    }

    private Load() {
    }

    /** Two accounts, the smaller key first: transactions that lock in different orders end in deadlocks. */
    static long[] pair(Random chance) {
        int one = chance.nextInt(KEYS);
        int other = (one + 1 + chance.nextInt(KEYS - 1)) % KEYS;
        return new long[] {Math.min(one, other), Math.max(one, other)};
    }

    /** Writes the entries that have this key and those after it, FILL_BATCH of them. */
    interface Fill {
        void from(int first);
    }

    /**
     * Answers each line "OPERATION;CLIENTS;SECONDS" by one: "rate p50 p99 failed", or "error: ...".
     * The operation "fill" writes all entries, once.
     */
    static void serve(Map<String, Operation> operations, Fill fill) throws Exception {
        operations.put("fill", nobody -> {
            for (int first = 0; first < KEYS; first += FILL_BATCH) {
                fill.from(first);
            }
        });
        System.out.println("ready");
        System.out.flush();
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            String[] words = line.split(";");
            String answer;
            try {
                Operation operation = operations.get(words[0]);
                if (words[0].equals("fill")) {
                    operation.run(null);
                    answer = "0 0 0 0";
                } else {
                    answer = measured(
                        operation, Integer.parseInt(words[1]), Double.parseDouble(words[2]));
                }
            } catch (Exception error) {
                answer = "error: " + String.valueOf(error).replace('\n', ' ');
            }
            System.out.println(answer);
            System.out.flush();
        }
        Runtime.getRuntime().halt(0);
    }

    private static final class Client extends Thread {
        final Operation operation;
        final long begin;
        final long end;
        long[] times = new long[1024];
        int count;
        long failed;
        long began;
        long ended;
        Exception error;

        Client(Operation operation, long begin, long end) {
            this.operation = operation;
            this.begin = begin;
            this.end = end;
        }

        @Override
        public void run() {
            Random chance = ThreadLocalRandom.current();
            long latest = end + (long) (LATEST * 1e9);
            began = end;
            ended = end;
            try {
                for (long now = System.nanoTime();
                        now < end || (count == 0 && now < latest); now = System.nanoTime()) {
                    try {
                        operation.run(chance);
                    } catch (Conflict refused) {
                        failed++;
                        continue;
                    }
                    if (now >= begin) {
                        began = Math.min(began, now);
                        ended = System.nanoTime();
                        if (count == times.length) {
                            times = Arrays.copyOf(times, 2 * count);
                        }
                        times[count++] = ended - now;
                    }
                }
            } catch (Exception found) {
                error = found;
            }
        }
    }

    private static String measured(Operation operation, int clients, double seconds) throws Exception {
        long begin = System.nanoTime() + (long) (WARM_UP * 1e9);
        long end = begin + (long) (seconds * 1e9);
        List<Client> running = new ArrayList<>();
        for (int place = 0; place < clients; place++) {
            Client client = new Client(operation, begin, end);
            client.start();
            running.add(client);
        }
        int count = 0;
        long failed = 0;
        double took = seconds;
        for (Client client : running) {
            client.join();
            if (client.error != null) {
                throw client.error;
            }
            count += client.count;
            failed += client.failed;
            took = Math.max(took, (client.ended - client.began) / 1e9);
        }
        if (count == 0) {
            throw new IllegalStateException("no operation ended within " + (seconds + LATEST) + " s");
        }
        long[] times = new long[count];
        int at = 0;
        for (Client client : running) {
            System.arraycopy(client.times, 0, times, at, client.count);
            at += client.count;
        }
        Arrays.sort(times);
        return count / took + " " + times[count / 2] / 1e9 + " "
            + times[(int) (count * 0.99)] / 1e9 + " " + failed;
    }
}
