package production

import (
	"context"
	"log"
	"log/slog"
	"os"
	"strings"

	"github.com/rollway/rollway"
)

// program is the child of TestProgram.
func program() {
	service := os.Getenv("ROLLWAY_TEST_PROGRAM")
	if strings.HasSuffix(service, ".test") {
		service = "" // the name of the program
	}
	l, err := Open(service, Options{})
	if err != nil {
		panic(err)
	}
	ctx := context.Background()
	l.Debug(ctx, "from the Logger")
	slog.Info("from slog")
	log.Print("from log")
	rollway.Default().Info(ctx, "from the default")
	rollway.FromContext(ctx).Info(ctx, "from a context")
	if err := l.Close(); err != nil {
		panic(err)
	}
	os.Exit(0) // without the test's own output
}
