// Package preset has formats that other systems and libraries define:
//
//	rollway.Output{Writer: out, Encoder: preset.ECS()}
//
// Each is a rollway.JSON, whose fields can be changed. Attributes are beside the fields; one
// with the name of a field gets the prefix attrs. The levels PANIC and FATAL+1, which the
// others lack, are written in the same form.
package preset

import (
	"time"

	"github.com/rollway/rollway"
)

// ECS is the Elastic Common Schema with the names of its logging libraries.
func ECS() rollway.JSON {
	return rollway.JSON{
		Layout: "time:@timestamp level:log.level msg:message ecs.version=8.17.0 service:service.name logger:log.logger " +
			"source:log.origin trace_id:trace.id span_id:span.id error stack:error.stack_trace attrs:",
		Level: rollway.LevelLower, Source: rollway.SourceECS, Errors: rollway.ErrorECS,
	}
}

// GCP is what Google Cloud Logging reads from standard output and files, with the service
// where Error Reporting looks for it. project is the id of the project whose traces the ids
// belong to; without one they are not links.
func GCP(project string) rollway.JSON {
	trace := "logging.googleapis.com/trace"
	if project != "" {
		trace += "=projects/" + project + "/traces/"
	}
	return rollway.JSON{
		Layout: "level:severity time msg:message service:serviceContext{service} logger source:logging.googleapis.com/sourceLocation trace_id:" + trace +
			" span_id:logging.googleapis.com/spanId error stack:stack_trace attrs:",
		Level: rollway.LevelSeverity, Source: rollway.SourceObject,
	}
}

// Slog is slog.JSONHandler with AddSource.
func Slog() rollway.JSON {
	return rollway.JSON{
		Layout: "time level source msg logger trace_id span_id attrs:",
		Time:   time.RFC3339Nano, Location: time.Local, Source: rollway.SourceObject,
	}
}

// Zap is the encoder of zap.NewProductionConfig.
func Zap() rollway.JSON {
	return rollway.JSON{
		Layout: "level time:ts logger source:caller msg trace_id span_id attrs: stack:stacktrace",
		Time:   rollway.UnixFloat, Level: rollway.LevelLower, Duration: rollway.Seconds,
	}
}

// Zerolog is a zerolog.Logger with its global defaults.
func Zerolog() rollway.JSON {
	return rollway.JSON{
		Layout: "level logger trace_id span_id attrs: time source:caller msg:message",
		Time:   time.RFC3339, Location: time.Local, Level: rollway.LevelLower, Source: rollway.SourceFull, Duration: rollway.Milliseconds,
	}
}
