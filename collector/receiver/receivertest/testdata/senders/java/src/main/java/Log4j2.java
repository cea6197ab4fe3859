import org.apache.logging.log4j.Level;
import org.apache.logging.log4j.LogManager;
import org.apache.logging.log4j.Logger;
import org.apache.logging.log4j.ThreadContext;

/** Logs by Log4j 2 with its thread context, which has texts; its configuration says where to. */
public final class Log4j2 {
    public static void main(String[] args) throws Exception {
        Logger log = LogManager.getLogger("shop.cart");
        for (Events.Event e : Events.all()) {
            e.trace.forEach(ThreadContext::put);
            e.attrs.forEach((k, v) -> ThreadContext.put(k, String.valueOf(v)));
            log.atLevel(Level.valueOf(e.level)).withThrowable(e.error).log("{}", e.msg);
            ThreadContext.clearAll();
        }
        LogManager.shutdown();
        Events.await();
    }
}
