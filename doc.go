// Package rollway is a structured logger that allocates nothing per line and writes
// only valid lines.
//
// Attributes are [slog.Attr]; there is no vocabulary of its own to learn:
//
//	log, err := rollway.New(rollway.Options{})       // JSON to stderr at INFO
//	log.Info(ctx, "charged", slog.String("customer", id), slog.Int("retry", 2))
//
// A record is encoded once per format and handed to each output whose level admits
// it. An output is any [io.Writer]. The writers in packages slab, file and remote
// batch lines, keep their order and count them. [Logger.Handler] connects [log/slog]
// to the same outputs.
//
// A line is one JSON object with these keys in this order, each present only when
// known: time, level, msg, service, logger, source, trace_id, span_id, error, attrs.
// Attributes go into attrs, except those named service, trace_id, span_id (strings)
// and error, which set the key of that name.
package rollway
