"""A resident process with ClickHouse (chdb) or DuckDB. It reads commands as JSON, one a
line: {"load": FILE} or {"sql": TEXT, "lines": BOOL}, and answers each with a line. The
times are those until the whole answer is in memory; it is taken apart after that."""
import json, os, sys, time

CLICKHOUSE = """CREATE TABLE logs (
  time DateTime64(6, 'UTC') CODEC(Delta, ZSTD(1)),
  level LowCardinality(String) CODEC(ZSTD(1)),
  msg String CODEC(ZSTD(1)),
  service LowCardinality(String) CODEC(ZSTD(1)),
  trace_id String CODEC(ZSTD(1)),
  span_id String CODEC(ZSTD(1)),
  error Tuple(kind LowCardinality(String), msg String, stack String) CODEC(ZSTD(1)),
  attrs Tuple(customer_id String, method LowCardinality(String), path LowCardinality(String), status UInt16,
    took_us UInt32, bytes UInt32, region LowCardinality(String), host LowCardinality(String)) CODEC(ZSTD(1)),
  INDEX words msg TYPE tokenbf_v1(32768, 3, 0) GRANULARITY 1,
  INDEX traces trace_id TYPE bloom_filter(0.001) GRANULARITY 1
) ENGINE = MergeTree PARTITION BY toDate(time) ORDER BY time"""

DUCKDB = """{time: 'TIMESTAMP', level: 'VARCHAR', msg: 'VARCHAR', service: 'VARCHAR', trace_id: 'VARCHAR', span_id: 'VARCHAR',
  error: 'STRUCT(kind VARCHAR, msg VARCHAR, stack VARCHAR)',
  attrs: 'STRUCT(customer_id VARCHAR, method VARCHAR, path VARCHAR, status USMALLINT, took_us UINTEGER, bytes UINTEGER, region VARCHAR, host VARCHAR)'}"""


class ClickHouse:
    def __init__(self, folder):
        import chdb
        from chdb import session
        self.version = str(chdb.query("SELECT version()", "TSV")).strip() + " in chdb " + chdb.__version__
        self.session = session.Session(folder)
        self.session.query("CREATE DATABASE IF NOT EXISTS bench ENGINE = Atomic")
        self.session.query("USE bench")

    def load(self, file):
        self.session.query(CLICKHOUSE)
        self.session.query("INSERT INTO logs SELECT * FROM file('%s', 'JSONEachRow') SETTINGS date_time_input_format = 'best_effort'" % file)
        self.session.query("OPTIMIZE TABLE logs FINAL")
        size = "SELECT sum(bytes_on_disk) FROM system.parts WHERE active AND table = 'logs' AND database = 'bench'"
        return int(str(self.session.query(size, "TSV")))

    def ask(self, sql):
        return self.session.query(sql, "TSV").bytes()

    def rows(self, answer):
        return [line.split("\t") for line in answer.decode().splitlines()]


class DuckDB:
    def __init__(self, folder):
        import duckdb
        self.version = duckdb.__version__ + " over Parquet"
        self.parquet = os.path.join(folder, "logs.parquet")
        self.db = duckdb.connect()
        if os.path.exists(self.parquet):
            self.view()

    def view(self):
        self.db.execute("CREATE VIEW logs AS SELECT * FROM read_parquet('%s')" % self.parquet)

    def load(self, file):
        self.db.execute("COPY (SELECT * FROM read_json('%s', format = 'newline_delimited', columns = %s)) TO '%s' (FORMAT parquet, COMPRESSION zstd)" % (file, DUCKDB, self.parquet))
        self.view()
        return os.path.getsize(self.parquet)

    def ask(self, sql):
        return self.db.execute(sql).to_arrow_table()

    def rows(self, answer):
        return zip(*(column.to_pylist() for column in answer.columns))


def main():
    engine = {"ClickHouse": ClickHouse, "DuckDB": DuckDB}[sys.argv[1]](sys.argv[2])
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what an engine prints is no answer

    def say(**answer):
        print(json.dumps(answer), file=answers, flush=True)

    say(version=engine.version)
    for line in sys.stdin:
        command = json.loads(line)
        wall, cpu = time.perf_counter(), time.process_time()
        try:
            result = engine.load(command["load"]) if "load" in command else engine.ask(command["sql"])
        except Exception as e:
            say(error=str(e))
            continue
        times = {"wall": time.perf_counter() - wall, "cpu": time.process_time() - cpu}
        if "load" in command:
            say(stored=result, **times)
        else:
            rows = engine.rows(result)
            say(rows=["\t".join(map(str, r[:1] if command["lines"] else r)) for r in rows], **times)


main()
