module github.com/rollway/rollway/bridge/zaplog

go 1.26.0

require (
	github.com/rollway/rollway v0.2.0
	go.uber.org/zap v1.28.0
)

require (
	go.uber.org/multierr v1.11.0 // indirect
	golang.org/x/sys v0.49.0 // indirect
)

replace github.com/rollway/rollway => ../../
