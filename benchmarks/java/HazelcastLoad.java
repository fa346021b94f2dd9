import com.hazelcast.client.HazelcastClient;
import com.hazelcast.client.config.ClientConfig;
import com.hazelcast.core.HazelcastInstance;
import com.hazelcast.map.IMap;
import com.hazelcast.nio.serialization.genericrecord.GenericRecord;
import com.hazelcast.nio.serialization.genericrecord.GenericRecordBuilder;
import com.hazelcast.sql.SqlResult;
import com.hazelcast.sql.SqlRow;
import com.hazelcast.transaction.TransactionContext;
import com.hazelcast.transaction.TransactionException;
import com.hazelcast.transaction.TransactionOptions;
import com.hazelcast.transaction.TransactionalMap;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Random;
import java.util.concurrent.TimeUnit;

/** Clients of Hazelcast in Java: the ports of its members. They share one instance, as its manual advises. */
public final class HazelcastLoad {
    public static void main(String[] ports) throws Exception {
        ClientConfig config = new ClientConfig().setClusterName("grid");
        config.setProperty("hazelcast.logging.type", "none");
        for (String port : ports) {
            config.getNetworkConfig().addAddress("127.0.0.1:" + port);
        }
        HazelcastInstance client = HazelcastClient.newHazelcastClient(config);
        IMap<Long, GenericRecord> items = client.getMap("items");
        Map<String, Load.Operation> operations = new LinkedHashMap<>();
        operations.put("get", chance -> {
            GenericRecord found = items.get((long) chance.nextInt(Load.KEYS));
            if (found.getString("name") == null) {
                throw new IllegalStateException("an entry without its name");
            }
        });
        operations.put("put", chance -> {
            int key = chance.nextInt(Load.KEYS);
            items.set((long) key, item(key));
        });
        operations.put("SELECT by key", chance -> rows(client,
            "SELECT name, category, price, small, stock FROM items WHERE __key = ?",
            (long) chance.nextInt(Load.KEYS)));
        operations.put("SELECT by index", chance -> rows(client,
            "SELECT __key, stock FROM items WHERE name = ?",
            "name" + chance.nextInt(Load.NAMES)));
        operations.put("UPDATE by key", chance -> client.getSql().execute(
            "UPDATE items SET stock = stock + 1 WHERE __key = ?",
            (long) chance.nextInt(Load.KEYS)).close());
        operations.put("2 keys, pessimistic", chance -> transfer(client, chance));
        IMap<Long, Long> accounts = client.getMap("accounts");
        Load.serve(operations, first -> {
            Map<Long, GenericRecord> some = new LinkedHashMap<>();
            Map<Long, Long> balances = new LinkedHashMap<>();
            for (int key = first; key < first + Load.FILL_BATCH; key++) {
                some.put((long) key, item(key));
                balances.put((long) key, Load.OPENING);
            }
            items.putAll(some);
            accounts.putAll(balances);
        });
    }

    private static GenericRecord item(int key) {
        return GenericRecordBuilder.compact("Item")
            .setString("name", "name" + key % Load.NAMES)
            .setString("category", "c" + key % 7)
            .setFloat64("price", key * 1.5)
            .setInt32("small", key % 100)
            .setInt64("stock", key)
            .build();
    }

    private static void rows(HazelcastInstance client, String text, Object argument) {
        try (SqlResult result = client.getSql().execute(text, argument)) {
            int count = 0;
            for (SqlRow row : result) {
                row.getObject(1);
                count++;
            }
            if (count == 0) {
                throw new IllegalStateException("no row for " + argument);
            }
        }
    }

    private static void transfer(HazelcastInstance client, Random chance) throws Load.Conflict {
        long[] keys = Load.pair(chance);
        TransactionContext context = client.newTransactionContext(new TransactionOptions()
            .setTransactionType(TransactionOptions.TransactionType.TWO_PHASE)
            .setDurability(1).setTimeout(30, TimeUnit.SECONDS));
        context.beginTransaction();
        try {
            TransactionalMap<Long, Long> accounts = context.getMap("accounts");
            long from = accounts.getForUpdate(keys[0]);
            long to = accounts.getForUpdate(keys[1]);
            accounts.set(keys[0], from - 1);
            accounts.set(keys[1], to + 1);
            context.commitTransaction();
        } catch (TransactionException refused) {
            context.rollbackTransaction();
            throw new Load.Conflict(refused);
        }
    }
}
