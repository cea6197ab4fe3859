package collector

import (
	"os"

	"github.com/rollway/rollway/collector/config"
	"github.com/rollway/rollway/collector/enrich"
	"github.com/rollway/rollway/collector/ulid"
)

// compileEnrichment returns what cfg says of enrichment, nil if it says nothing.
// ids go on over reloads.
func compileEnrichment(cfg config.Config, ids *ulid.Source) (*enrich.Program, error) {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	return enrich.Compile(cfg.Enrich, cfg.Rules, enrich.Environment{Host: host, IDs: ids})
}
