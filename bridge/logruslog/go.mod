module github.com/rollway/rollway/bridge/logruslog

go 1.26.0

require (
	github.com/rollway/rollway v0.2.0
	github.com/sirupsen/logrus v1.10.2
)

require golang.org/x/sys v0.49.0 // indirect

replace github.com/rollway/rollway => ../../
