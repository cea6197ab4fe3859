import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.File;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.util.ArrayList;
import java.util.Base64;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** The events that every client sends. */
final class Events {
    static final class DatabaseError extends RuntimeException {
        DatabaseError() { super("connection refused"); }
    }

    static final class PaymentError extends RuntimeException {
        PaymentError(Throwable cause) { super("no payment for order 7", cause); }
    }

    static final class Event {
        String level, msg;
        Map<String, Object> attrs = new LinkedHashMap<>();
        Map<String, String> trace = new LinkedHashMap<>();
        Throwable error;
    }

    static void connect() { throw new DatabaseError(); }

    static Throwable failure() {
        try {
            try {
                connect();
            } catch (DatabaseError e) {
                throw new PaymentError(e);
            }
        } catch (PaymentError e) {
            return e;
        }
        return null;
    }

    static List<Event> all() throws Exception {
        ObjectMapper json = new ObjectMapper();
        List<Event> list = new ArrayList<>();
        for (JsonNode n : json.readTree(new File(System.getenv("EVENTS")))) {
            Event e = new Event();
            e.level = n.get("level").asText();
            JsonNode msg = n.get("msg");
            e.msg = msg.isTextual() ? msg.asText() : msg.get("repeat").get(0).asText().repeat(msg.get("repeat").get(1).asInt());
            n.get("attrs").fields().forEachRemaining(f -> {
                JsonNode v = f.getValue();
                e.attrs.put(f.getKey(), v.has("bytes") ? Base64.getDecoder().decode(v.get("bytes").asText()) : json.convertValue(v, Object.class));
            });
            for (String id : new String[] {"trace_id", "span_id"}) {
                if (n.has(id)) {
                    e.trace.put(id, n.get(id).asText());
                }
            }
            if (n.path("exception").asBoolean()) {
                e.error = failure();
            }
            list.add(e);
        }
        return list;
    }

    /** Waits until all are stored, for clients that do not. */
    static void await() throws Exception {
        HttpClient client = HttpClient.newHttpClient();
        Pattern count = Pattern.compile("(?m)^rollway_events_stored_total (\\d+)");
        for (int i = 0; i < 200; i++) {
            HttpRequest ask = HttpRequest.newBuilder(URI.create(System.getenv("COLLECTOR") + "/metrics")).build();
            Matcher m = count.matcher(client.send(ask, HttpResponse.BodyHandlers.ofString()).body());
            if (m.find() && Integer.parseInt(m.group(1)) >= 12) {
                return;
            }
            Thread.sleep(100);
        }
    }
}
