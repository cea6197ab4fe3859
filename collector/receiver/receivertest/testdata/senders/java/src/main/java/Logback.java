import ch.qos.logback.classic.LoggerContext;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import org.slf4j.MDC;
import org.slf4j.event.Level;
import org.slf4j.spi.LoggingEventBuilder;

/** Logs by SLF4J's fluent API; Logback's configuration says where to. */
public final class Logback {
    public static void main(String[] args) throws Exception {
        Logger log = LoggerFactory.getLogger("shop.cart");
        for (Events.Event e : Events.all()) {
            e.trace.forEach(MDC::put);
            LoggingEventBuilder b = log.atLevel(e.level.equals("fatal") ? Level.ERROR : Level.valueOf(e.level.toUpperCase()));
            e.attrs.forEach(b::addKeyValue);
            if (e.error != null) {
                b.setCause(e.error);
            }
            b.log(e.msg);
            MDC.clear();
        }
        ((LoggerContext) LoggerFactory.getILoggerFactory()).stop();
        Events.await();
    }
}
