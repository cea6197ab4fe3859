package imports

// edge allows one package to import another. Packages of this repository are
// named by their folder ("." is package rollway), others by import path, where
// a row is also for the packages below it.
type edge struct{ from, to, why string }

// table is every import between packages of this repository and every import
// of another module, in code that is not a test.
var table = []edge{
	{".", "internal/jsonline", "lines are written as the canonical line"},
	{".", "golang.org/x/sys/unix", "is this output a terminal: an ioctl"},
	{".", "golang.org/x/sys/windows", "is this output a terminal: the console mode"},
	{"slab", "internal/jsonline", "the line that announces a loss"},
	{"slab", "internal/slabfile", "slabs that outlive the process"},
	{"file", "internal/logfile", "names and renames of rotated files"},
	{"internal/logfile", "golang.org/x/sys/unix", "a rename that never replaces a file"},
	{"internal/segment", "internal/direct", "appends past the page cache"},
	{"internal/segment", "internal/disk", "locks, fsync of data and folders on every system"},
	{"internal/segment", "golang.org/x/sys/unix", "whether anybody else has a removed file open: a lease"},
	{"internal/segment", "internal/logfile", "names and renames of rotated files"},
	{"file", "internal/disk", "fsync of a folder on every system"},
	{"internal/spool", "internal/disk", "files that tests can make fail and crash"},
	{"internal/slabfile", "golang.org/x/sys/unix", "mapped memory: mmap, fallocate, flock, and which file system it is"},
	{".", "internal/goid", "how deep the values of a goroutine log each other"},
	{"shard", "internal/direct", "buffers that direct I/O takes as they are"},
	{"internal/segment", "internal/framed", "framed segments are begun, sealed and told from text"},
	{"shard", "internal/framed", "records are framed as they are copied"},
	{"shard", "internal/segment", "the files of Open"},
	{"shard", "internal/goid", "a goroutine's records stay in one shard"},
	{"shard", "internal/jsonline", "the line that announces a loss"},
	{"internal/probe", "golang.org/x/sys/unix", "what a file system supports: O_DIRECT, statx, pwritev2, fallocate, statfs"},
	{"internal/direct", "golang.org/x/sys/unix", "O_DIRECT, pwritev2, fallocate, statx, mmap"},
	{"rollwaytest", "internal/jsonline", "levels of recorded lines"},
	{"remote", "internal/jsonline", "levels of lines; text that goes into JSON"},
	{"remote", "internal/spool", "lines wait on disk while the peer is away"},
	{"remote", "golang.org/x/sys/unix", "how much of what was sent the peer has acknowledged"},
	{"relay", "golang.org/x/sys/unix", "splice, and waiting for a socket without a buffer"},
	{"httplog", ".", "middleware that logs requests with a Logger"},
	{"httplog", "internal/request", "what a request's line holds"},
	{"stdlog", ".", "a Logger behind the standard library's log"},
	{"stdlog", "internal/jsonline", "the names of levels"},

	{"bridge/grpclog", ".", "interceptors that log calls with a Logger"},
	{"bridge/grpclog", "internal/request", "what a call's line holds, as for HTTP"},
	{"bridge/grpclog", "google.golang.org/grpc", "the interface it implements"},
	{"bridge/logrsink", ".", "a Logger behind logr"},
	{"bridge/logrsink", "github.com/go-logr/logr", "the interface it implements"},
	{"bridge/otellog", ".", "a Logger behind OpenTelemetry's log API"},
	{"bridge/otellog", "internal/jsonline", "the names of levels"},
	{"bridge/otellog", "go.opentelemetry.io/otel", "the interface it implements"},

	{"bridge/zstd", "github.com/klauspost/compress/zstd", "the format it brings"},

	{"collector/config", "go.yaml.in/yaml/v3", "the configuration is YAML"},
	{"collector/access", "go.yaml.in/yaml/v3", "tokens are a YAML list"},
	{"collector/access", "collector/config", "what is wrong is told as it is for the configuration"},
	{"collector/access", "collector/normalize", "a token's tenant goes into its events"},
	{"collector/deadletter", "collector/normalize", "keeps what a batch has rejected"},
	{"collector/deadletter", "file", "a rotating file with bounded size is what the library has"},
	{"collector/deadletter", "internal/jsonline", "lines hold text of senders, escaped as in canonical ones"},
	{"collector/normalize", "internal/jsonline", "writes the canonical line"},
	{"collector/normalize", "github.com/go-json-experiment/json/jsontext", "reads JSON without building values, and strictly"},
	{"collector/receive", "collector/normalize", "a request's events become lines before they are stored"},
	{"collector/receive", "internal/jsonline", "answers hold text of senders, escaped as in lines"},
	{"collector/receive", "github.com/klauspost/compress", "bodies are unpacked: gzip and deflate faster than by the standard library, zstd, snappy"},
	{"collector/door/wire", "google.golang.org/protobuf/encoding/protowire", "tags and varints of protocol buffers"},
	{"collector/door/otlp", "collector/door/wire", "reads protocol buffers without building messages"},
	{"collector/door/otlp", "collector/normalize", "a record's fields become a line"},
	{"collector/door/otlp", "collector/receive", "it is one of its protocols"},
	{"collector/door/otlp", "internal/jsonline", "answers in JSON, and times"},
	{"collector/door/otlp", "github.com/go-json-experiment/json/jsontext", "reads OTLP's JSON without building values"},
	{"collector/door/otlp", "google.golang.org/protobuf/encoding/protowire", "writes answers, and JSON as protocol buffers"},
	{"collector/door/syslog", "collector/normalize", "a message becomes a line"},
	{"collector/door/syslog", "collector/receive", "the interface it implements"},
	{"collector/door/syslog", "github.com/go-json-experiment/json/jsontext", "is a message's text one JSON object"},
	{"collector/door/scan", "github.com/go-json-experiment/json/jsontext", "checks the JSON that it then walks through"},
	{"collector/door/elastic", "collector/door/scan", "documents are taken apart without being decoded"},
	{"collector/door/elastic", "collector/normalize", "documents become lines"},
	{"collector/door/elastic", "collector/receive", "the interface it implements"},
	{"collector/door/elastic", "internal/jsonline", "answers hold text of senders, escaped as in lines"},
	{"collector/door/splunk", "collector/door/scan", "events are taken apart without being decoded"},
	{"collector/door/splunk", "collector/normalize", "events become lines"},
	{"collector/door/splunk", "collector/receive", "the interface it implements"},
	{"collector/door/splunk", "internal/jsonline", "answers hold text of senders, escaped as in lines"},
	{"collector/door/doortest", "collector", "real clients send to a real collector"},
	{"collector/door/doortest", "collector/config", "how that is set up"},
	{"collector/door/doortest", "github.com/go-json-experiment/json/jsontext", "masks in lines what differs from run to run"},
	{"collector/journal", "internal/disk", "files that tests can make fail and crash"},
	{"collector/journal", "github.com/klauspost/compress/zstd", "full segments are packed"},
	{"collector/sink", "collector/journal", "a sink is a reader of the journal that keeps its place"},
	{"collector/sink/kafka", "collector/sink", "takes its batches"},
	{"collector/sink/kafka", "github.com/twmb/franz-go", "Kafka's protocol, with an idempotent producer"},
	{"collector/sink/kafka", "github.com/go-json-experiment/json/jsontext", "finds the field that is the record's key"},
	{"collector/query", "internal/jsonline", "levels, times and strings as lines have them"},
	{"collector", "github.com/prometheus/client_golang", "counts are published as metrics"},
	{"collector/cmd/rollway", "github.com/go-json-experiment/json/jsontext", "send and the coloured output walk through a line's JSON"},
	{"collector/cmd/rollway", "github.com/klauspost/compress/gzip", "send reads packed files"},
	{"collector/cmd/rollway", "github.com/klauspost/compress/zstd", "send reads packed files"},
	{"collector/cmd/rollway", "github.com/KimMachineGun/automemlimit/memlimit", "the garbage collector keeps within the cgroup's memory"},
	{"collector/cmd/rollway", "golang.org/x/term", "progress and colours on a terminal only"},
	{"collector/cmd/rollway", "github.com/HdrHistogram/hdrhistogram-go", "demo reports percentiles"},
}

// composers put stages together and so may import any package of this
// repository. Imports of other modules need a row of the table all the same.
var composers = map[string]string{
	"collector":             "the daemon: receivers, journal, query and sinks become one process",
	"collector/cmd/rollway": "the program",
	"examples":              "programs that a user copies put stages together as a user does",
	"bench":                 "everything is measured there",
	"scripts":               "tools that build and test the rest",
}

// stages are the parts of the road from a log call to a peer. They meet in a
// composer only: what they agree on is the standard library's.
var stages = []string{"slab", "shard", "file", "remote", "relay"}
