package main

import (
	"context"
	"log/slog"
	"os"

	"github.com/rollway/rollway/production"
)

func main() {
	log, err := production.Open("payment-api", production.Options{})
	if err != nil {
		slog.Error("cannot log", "error", err)
		os.Exit(1)
	}
	defer log.Close() // waits for up to 5 s for lines on their way

	ctx := context.Background()
	log.Info(ctx, "charged", slog.String("customer", "cus_123"), slog.Int("retry", 2))
	slog.Warn("through log/slog as well", "card", "expires soon")
}
