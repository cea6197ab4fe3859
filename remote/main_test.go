package remote_test

import (
	"testing"

	"github.com/rollway/rollway/internal/inparallel"
)

func TestMain(m *testing.M) { inparallel.Run(m, 8) }
