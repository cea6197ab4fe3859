package query

import (
	"fmt"
	"net/url"
	"strconv"
	"time"
)

// A Query is one question, as each engine is asked it.
type Query struct {
	Name, Title string
	Rollway     url.Values // of GET /api/query
	ClickHouse  string
	DuckDB      string
	Victoria    string     // LogsQL
	Loki        url.Values // of GET /loki/api/v1/query_range; nil: it cannot answer it as the others do
	Shell       string     // reads NDJSON from a pipe; "": a search cannot answer it

	// columns are what to compare of Rollway's rows; none: rows are lines, and their times
	// are compared.
	columns  []string
	tally    bool    // the command prints what uniq -c prints
	estimate float64 // by how much the last column may differ, as a share of it: some engine estimates
}

// SQL that engines share: what identifies a line, and what selects lines of services.
const (
	chLine         = "SELECT toUnixTimestamp64Micro(time), * FROM logs WHERE "
	duckLine       = "SELECT epoch_us(time), * FROM logs WHERE "
	errors3        = "level IN ('ERROR', 'PANIC', 'FATAL')"
	lokiAll        = "{service=~`.+`}"
	lokiErrors     = "level=~`ERROR|PANIC|FATAL`"
	victoriaErrors = "level:in(ERROR, PANIC, FATAL)"
	// quantile is a share that no group's size makes a whole rank of: there engines differ
	// in which of two neighbors they return.
	quantile = "0.9501"
)

// Queries lists the questions about a corpus.
func Queries(c Corpus) []Query {
	from := Begin.Add(3*24*time.Hour + 10*time.Hour)
	since, until := from.Format(time.RFC3339), from.Add(time.Hour).Format(time.RFC3339)
	hour := from.Format("2006-01-02T15")
	span := func(cast string) string {
		const layout = "2006-01-02 15:04:05"
		return fmt.Sprintf("time >= %s'%s' AND time < %[1]s'%[3]s'", cast, from.Format(layout), from.Add(time.Hour).Format(layout))
	}
	q := func(text string, more ...string) url.Values {
		v := url.Values{"q": {text}}
		for i := 0; i+1 < len(more); i += 2 {
			v.Set(more[i], more[i+1])
		}
		return v
	}
	same := func(sql string) (string, string) { return chLine + sql, duckLine + sql }
	end := Begin.Add((Days + 1) * 24 * time.Hour)
	logQL := func(text string) url.Values { return lokiQuery(text, Begin, end) }
	one := func(text string) url.Values { return lokiQuery(text, end, end, "step", "1h") } // number
	all := []Query{
		{Name: "a", Title: "a rare word, 1 hit", Loki: logQL(lokiAll + " |= `" + c.Needle + "`"), Victoria: `_msg:"` + c.Needle + `"`, Rollway: q("msg~" + c.Needle), Shell: "rg -F " + c.Needle,
			ClickHouse: chLine + "hasToken(msg, '" + c.Needle + "')", DuckDB: duckLine + "contains(msg, '" + c.Needle + "')"},
		{Name: "b", Title: "a trace", Loki: logQL(lokiAll + " |= `" + c.Trace + "`"), Victoria: `trace_id:="` + c.Trace + `"`, Rollway: q("trace_id=" + c.Trace), Shell: "rg -F " + c.Trace},
		{Name: "c", Title: "errors of 1 hour of 7 days", Loki: lokiQuery("{"+lokiErrors+"}", from, from.Add(time.Hour)), Victoria: fmt.Sprintf("_time:[%s, %s) ", since, until) + victoriaErrors, Rollway: q("level>=error", "since", since, "until", until),
			ClickHouse: chLine + span("") + " AND " + errors3, DuckDB: duckLine + span("TIMESTAMP ") + " AND " + errors3,
			Shell: `rg '^\{"time":"` + hour + `[^"]*","level":"(ERROR|PANIC|FATAL)"'`},
		{Name: "d", Title: "a service and a text", Loki: logQL("{service=`payment-api`} |= `deadline exceeded` |~ `\"msg\":\"[^\"]*deadline exceeded`"), Victoria: `{service="payment-api"} _msg:"deadline exceeded"`, Rollway: q(`service=payment-api msg~"deadline exceeded"`),
			Shell: `rg -F '"service":"payment-api"' | rg '"msg":"[^"]*deadline exceeded'`},
		{Name: "e", Title: "errors by hour", Loki: lokiQuery("sum(count_over_time({"+lokiErrors+"}[1h]))", Begin.Add(time.Hour), end, "step", "1h"), Victoria: victoriaErrors + " | stats by (_time:1h) count() n", Rollway: q("level>=error | stats count() as n by time(1h)"), columns: []string{"time", "n"}, tally: true,
			ClickHouse: "SELECT toUnixTimestamp(toStartOfHour(time)) AS h, count() FROM logs WHERE " + errors3 + " GROUP BY h",
			DuckDB:     "SELECT epoch(date_trunc('hour', time))::BIGINT AS h, count(*) FROM logs WHERE " + errors3 + " GROUP BY h",
			Shell:      `rg -o '^\{"time":"(.{13})[^"]*","level":"(ERROR|PANIC|FATAL)"' -r '$1' | uniq -c`},
		{Name: "f", Title: "the last 100 lines", Loki: lokiQuery(lokiAll, Begin, end, "limit", "100"), Victoria: "* | sort by (_time) desc limit 100", Rollway: q("", "last", "100"), Shell: "tail -n 100",
			ClickHouse: chLine + "1 ORDER BY time DESC LIMIT 100", DuckDB: duckLine + "true ORDER BY time DESC LIMIT 100"},
		{Name: "g", Title: "a regular expression", Loki: logQL(lokiAll + " |~ `declined \\(code 4[0-9]7\\)`"), Victoria: "_msg:~" + strconv.Quote(`declined \(code 4[0-9]7\)`), Rollway: q(`msg=~"declined \(code 4[0-9]7\)"`), Shell: `rg 'declined \(code 4[0-9]7\)'`,
			ClickHouse: chLine + `match(msg, 'declined \\(code 4[0-9]7\\)')`, DuckDB: duckLine + `regexp_matches(msg, 'declined \(code 4[0-9]7\)')`},
		{Name: "h", Title: "count all", Loki: one(fmt.Sprintf("sum(count_over_time(%s[%dd]))", lokiAll, Days+1)), Victoria: "* | stats count() n", Rollway: q("| stats count() as n"), columns: []string{"n"}, Shell: "wc -l",
			ClickHouse: "SELECT count() FROM logs", DuckDB: "SELECT count(*) FROM logs"},
		{Name: "i", Title: "count level debug", Loki: one(fmt.Sprintf("sum(count_over_time({level=`DEBUG`}[%dd]))", Days+1)), Victoria: "level:=DEBUG | stats count() n", Rollway: q("level=debug | stats count() as n"), columns: []string{"n"},
			ClickHouse: "SELECT count() FROM logs WHERE level = 'DEBUG'", DuckDB: "SELECT count(*) FROM logs WHERE level = 'DEBUG'",
			Shell: `rg -c '^\{"time":"[^"]*","level":"DEBUG"'`},
		{Name: "j", Title: "quantile by service and hour", Victoria: "attrs.took_us:>0 | stats by (service, _time:1h) quantile(" + quantile + ", attrs.took_us) v", columns: []string{"service", "time", "v"}, estimate: 0.01,
			Rollway:    q("took_us>0 | stats quantile(" + quantile + ", took_us) as v by service, time(1h)"),
			ClickHouse: "SELECT service, toUnixTimestamp(toStartOfHour(time)) AS h, quantileExact(" + quantile + ")(attrs.took_us) FROM logs WHERE attrs.took_us > 0 GROUP BY service, h",
			DuckDB:     "SELECT service, epoch(date_trunc('hour', time))::BIGINT AS h, quantile_disc(attrs.took_us, " + quantile + ") FROM logs WHERE attrs.took_us > 0 GROUP BY service, h"},
		{Name: "k", Title: "top 10 of an attribute with many values", Victoria: "attrs.customer_id:* | top 10 by (attrs.customer_id) | rename attrs.customer_id as customer_id, hits as count", Rollway: q("customer_id=* | top 10 customer_id"), columns: []string{"customer_id", "count"}, tally: true,
			ClickHouse: "SELECT attrs.customer_id AS c, count() AS n FROM logs WHERE c != '' GROUP BY c ORDER BY n DESC, c LIMIT 10",
			DuckDB:     "SELECT attrs.customer_id AS c, count(*) AS n FROM logs WHERE c IS NOT NULL GROUP BY c ORDER BY n DESC, c LIMIT 10",
			Shell:      `rg -o '"customer_id":"([^"]*)"' -r '$1' | sort | uniq -c | sort -k1,1nr -k2 | head -n 10`},
		{Name: "l", Title: "two words over 7 days", Loki: logQL(lokiAll + " |= `quota` |= `v137`"), Victoria: `_msg:quota _msg:v137`, Rollway: q(`msg~quota msg~"v137"`), Shell: "rg -F quota | rg -F v137",
			ClickHouse: chLine + "hasToken(msg, 'quota') AND hasToken(msg, 'v137')", DuckDB: duckLine + "contains(msg, 'quota') AND contains(msg, 'v137')"},
	}
	all[1].ClickHouse, all[1].DuckDB = same("trace_id = '" + c.Trace + "'")
	all[3].ClickHouse, all[3].DuckDB = same("service = 'payment-api' AND msg LIKE '%deadline exceeded%'")
	return all
}
