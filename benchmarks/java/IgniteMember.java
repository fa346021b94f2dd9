import java.util.ArrayList;
import java.util.List;
import org.apache.ignite.Ignition;
import org.apache.ignite.configuration.ClientConnectorConfiguration;
import org.apache.ignite.configuration.DataRegionConfiguration;
import org.apache.ignite.configuration.DataStorageConfiguration;
import org.apache.ignite.configuration.IgniteConfiguration;
import org.apache.ignite.spi.communication.tcp.TcpCommunicationSpi;
import org.apache.ignite.spi.discovery.tcp.TcpDiscoverySpi;
import org.apache.ignite.spi.discovery.tcp.ipfinder.vm.TcpDiscoveryVmIpFinder;

/** One member of Ignite: its folder, its ports for discovery, members and clients, then all for discovery. */
public final class IgniteMember {
    public static void main(String[] words) throws Exception {
        List<String> addresses = new ArrayList<>();
        for (int place = 4; place < words.length; place++) {
            addresses.add("127.0.0.1:" + words[place]);
        }
        IgniteConfiguration config = new IgniteConfiguration()
            .setIgniteInstanceName("member-" + words[1])
            .setConsistentId("member-" + words[1])
            .setWorkDirectory(words[0])
            .setLocalHost("127.0.0.1")
            .setMetricsLogFrequency(0)
            .setDiscoverySpi(new TcpDiscoverySpi()
                .setLocalPort(Integer.parseInt(words[1])).setLocalPortRange(0)
                .setIpFinder(new TcpDiscoveryVmIpFinder().setAddresses(addresses)))
            .setCommunicationSpi(new TcpCommunicationSpi()
                .setLocalPort(Integer.parseInt(words[2])).setLocalPortRange(0))
            .setClientConnectorConfiguration(new ClientConnectorConfiguration()
                .setHost("127.0.0.1").setPort(Integer.parseInt(words[3])).setPortRange(0)
                .setThreadPoolSize(8))
            .setDataStorageConfiguration(new DataStorageConfiguration()
                .setDefaultDataRegionConfiguration(new DataRegionConfiguration()
                    .setInitialSize(256L << 20).setMaxSize(768L << 20)));
        Ignition.start(config);
        Ready.untilInputEnds();
    }
}
