import com.hazelcast.config.Config;
import com.hazelcast.config.IndexType;
import com.hazelcast.config.IndexConfig;
import com.hazelcast.config.JoinConfig;
import com.hazelcast.config.MapConfig;
import com.hazelcast.core.Hazelcast;

/** One member of Hazelcast: its own port, then those of all members. */
public final class HazelcastMember {
    public static void main(String[] ports) throws Exception {
        Config config = new Config();
        config.setClusterName("grid");
        config.setProperty("hazelcast.logging.type", "none");
        config.setProperty("hazelcast.phone.home.enabled", "false");
        config.getJetConfig().setEnabled(true);
        config.getNetworkConfig().setPort(Integer.parseInt(ports[0])).setPortAutoIncrement(false);
        config.getNetworkConfig().getInterfaces().setEnabled(true).addInterface("127.0.0.1");
        JoinConfig join = config.getNetworkConfig().getJoin();
        join.getAutoDetectionConfig().setEnabled(false);
        join.getMulticastConfig().setEnabled(false);
        join.getTcpIpConfig().setEnabled(true);
        for (int place = 1; place < ports.length; place++) {
            join.getTcpIpConfig().addMember("127.0.0.1:" + ports[place]);
        }
        config.addMapConfig(new MapConfig("items").setBackupCount(1)
            .addIndexConfig(new IndexConfig(IndexType.HASH, "name")));
        config.addMapConfig(new MapConfig("accounts").setBackupCount(1));
        Hazelcast.newHazelcastInstance(config);
        Ready.untilInputEnds();
    }
}
