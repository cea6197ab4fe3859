import static org.codelibs.opensearch.runner.OpenSearchRunner.newConfigs;

import org.codelibs.opensearch.runner.OpenSearchRunner;

// One node of OpenSearch on 127.0.0.1, with its files below args[0] and HTTP at
// port args[1], until standard input ends.
public class Node {
  public static void main(String[] args) throws Exception {
    OpenSearchRunner runner = new OpenSearchRunner();
    runner.onBuild((number, settings) -> {
      for (String host : new String[] {"http.host", "transport.host", "network.host"}) {
        settings.put(host, "127.0.0.1");
      }
      settings.put("http.port", args[1]);
      settings.put("discovery.type", "single-node");
      // A nearly full disk is not what is tested.
      settings.put("cluster.routing.allocation.disk.threshold_enabled", false);
    }).build(newConfigs().clusterName("rollway-test").numOfNode(1).basePath(args[0]));
    runner.ensureYellow();
    while (System.in.read() >= 0) {
    }
    runner.close();
    System.exit(0);
  }
}
