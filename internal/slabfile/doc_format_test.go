package slabfile

import (
	"testing"

	"github.com/rollway/rollway/internal/recordlog/recordlogtest"
)

func TestFormatTables(t *testing.T) {
	recordlogtest.CheckTables(t, "../../docs/FORMAT.md", "layout.go")
}
