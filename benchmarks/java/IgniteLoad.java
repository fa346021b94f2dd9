import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.stream.IntStream;
import org.apache.ignite.Ignition;
import org.apache.ignite.binary.BinaryObject;
import org.apache.ignite.cache.query.SqlFieldsQuery;
import org.apache.ignite.client.ClientCache;
import org.apache.ignite.client.ClientException;
import org.apache.ignite.client.ClientTransaction;
import org.apache.ignite.client.IgniteClient;
import org.apache.ignite.configuration.ClientConfiguration;
import org.apache.ignite.transactions.TransactionConcurrency;
import org.apache.ignite.transactions.TransactionIsolation;

/** Thin clients of Ignite in Java: the ports of its members. They share one client, which threads may. */
public final class IgniteLoad {
    public static void main(String[] ports) throws Exception {
        String[] addresses = new String[ports.length];
        for (int place = 0; place < ports.length; place++) {
            addresses[place] = "127.0.0.1:" + ports[place];
        }
        IgniteClient client = Ignition.startClient(new ClientConfiguration()
            .setAddresses(addresses).setPartitionAwarenessEnabled(true));
        ClientCache<Long, BinaryObject> items = client.cache("items").withKeepBinary();
        ClientCache<Long, Long> accounts = client.cache("accounts");
        Map<String, Load.Operation> operations = new LinkedHashMap<>();
        operations.put("get", chance -> {
            BinaryObject found = items.get((long) chance.nextInt(Load.KEYS));
            if (found.field("NAME") == null) {
                throw new IllegalStateException("an entry without its name");
            }
        });
        operations.put("put", chance -> {
            int key = chance.nextInt(Load.KEYS);
            items.put((long) key, item(client, key));
        });
        operations.put("compute", chance -> {
            long key = chance.nextInt(Load.KEYS);
            transacted(client, true, () -> accounts.put(key, accounts.get(key) + 1));
        });
        operations.put("SELECT by key", chance -> rows(client,
            "SELECT name, category, price, small, stock FROM items WHERE id = ?",
            (long) chance.nextInt(Load.KEYS)));
        operations.put("SELECT by index", chance -> rows(client,
            "SELECT id, stock FROM items WHERE name = ?", "name" + chance.nextInt(Load.NAMES)));
        operations.put("UPDATE by key", chance -> rows(client,
            "UPDATE items SET stock = stock + 1 WHERE id = ?", (long) chance.nextInt(Load.KEYS)));
        operations.put("2 keys, serializable", chance -> transfer(client, accounts, false, chance));
        operations.put("2 keys, pessimistic", chance -> transfer(client, accounts, true, chance));
        Load.serve(operations, first -> {
            Map<Long, BinaryObject> some = new LinkedHashMap<>();
            for (int key = first; key < first + Load.FILL_BATCH; key++) {
                some.put((long) key, item(client, key));
            }
            items.putAll(some);
            // One by one: a large putAll never ended in a cache with transactions.
            IntStream.range(first, first + Load.FILL_BATCH).parallel()
                .forEach(key -> accounts.put((long) key, Load.OPENING));
        });
    }

    private static BinaryObject item(IgniteClient client, int key) {
        return client.binary().builder("Item")
            .setField("NAME", "name" + key % Load.NAMES)
            .setField("CATEGORY", "c" + key % 7)
            .setField("PRICE", key * 1.5)
            .setField("SMALL", key % 100)
            .setField("STOCK", (long) key)
            .build();
    }

    private static void rows(IgniteClient client, String text, Object argument) {
        List<List<?>> found = client.query(new SqlFieldsQuery(text).setArgs(argument)).getAll();
        if (found.isEmpty()) {
            throw new IllegalStateException("no row for " + argument);
        }
    }

    private static void transfer(
            IgniteClient client, ClientCache<Long, Long> accounts, boolean locks, Random chance)
            throws Load.Conflict {
        long[] keys = Load.pair(chance);
        transacted(client, locks, () -> {
            long from = accounts.get(keys[0]);
            long to = accounts.get(keys[1]);
            accounts.put(keys[0], from - 1);
            accounts.put(keys[1], to + 1);
        });
    }

    private static void transacted(IgniteClient client, boolean locks, Runnable work)
            throws Load.Conflict {
        try (ClientTransaction transaction = locks
                ? client.transactions().txStart(
                    TransactionConcurrency.PESSIMISTIC, TransactionIsolation.REPEATABLE_READ)
                : client.transactions().txStart(
                    TransactionConcurrency.OPTIMISTIC, TransactionIsolation.SERIALIZABLE)) {
            work.run();
            transaction.commit();
        } catch (ClientException refused) {
            throw new Load.Conflict(refused);
        }
    }
}
