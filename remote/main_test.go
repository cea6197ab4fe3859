package remote_test

import (
	"testing"

	"github.com/rollway/rollway/internal/testkit"
)

func TestMain(m *testing.M) { testkit.RunParallel(m, 8) }
