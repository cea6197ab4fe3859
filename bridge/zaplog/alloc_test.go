package zaplog_test

import (
	"errors"
	"io"
	"testing"
	"time"

	"github.com/rollway/rollway"
	"github.com/rollway/rollway/bridge/zaplog"
	"github.com/rollway/rollway/internal/testkit"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// calls are the calls whose price is measured, with how many allocations more than
// zap's own core a line may have.
var calls = []struct {
	name string
	more int
	call func(l *zap.Logger)
}{
	{"none", 0, func(l *zap.Logger) { l.Info("charged") }},
	{"five", 0, func(l *zap.Logger) {
		l.Info("charged", zap.String("customer", dyn.s), zap.Int("retry", dyn.n), zap.Bool("paid", dyn.n > 1), zap.Duration("took", dyn.d), zap.Float64("sum", dyn.f))
	}},
	{"error", 0, func(l *zap.Logger) { l.Warn("not charged", zap.Error(dyn.err), zap.String("customer", dyn.s)) }},
	{"time", 0, func(l *zap.Logger) { l.Info("charged", zap.Time("due", dyn.t), zap.Uint8("n", 3)) }},
	{"object", 1, func(l *zap.Logger) { l.Info("charged", zap.Object("pair", &dyn.pair)) }},
	{"array", 2, func(l *zap.Logger) { l.Info("charged", zap.Ints("list", dyn.list)) }},
	{"disabled", 0, func(l *zap.Logger) { l.Debug("charged", zap.String("customer", dyn.s)) }},
}

var dyn = struct {
	s    string
	n    int
	d    time.Duration
	f    float64
	t    time.Time
	err  error
	pair pair
	list []int
}{"cus_123", 2, time.Second, 1.5, time.Unix(1, 0), errors.New("gone"), pair{1, 2}, []int{1, 2, 3}}

func discarding(t testing.TB) (plain, bridged *zap.Logger) {
	plain = zap.New(zapcore.NewCore(zapcore.NewJSONEncoder(zap.NewProductionEncoderConfig()), zapcore.Lock(zapcore.AddSync(io.Discard)), zap.InfoLevel))
	bridged = zap.New(zaplog.New(newLogger(t, rollway.Options{Outputs: []rollway.Output{{Writer: io.Discard}}})))
	return plain, bridged
}

func TestAllocations(t *testing.T) {
	testkit.NoRace(t, "sync.Pool drops values at random, which allocates")
	plain, bridged := discarding(t)
	for _, c := range calls {
		own := testing.AllocsPerRun(1000, func() { c.call(plain) })
		if got := testing.AllocsPerRun(1000, func() { c.call(bridged) }); got > own+float64(c.more) {
			t.Errorf("%s: %v allocations, zap has %v", c.name, got, own)
		}
	}
	plain, bridged = plain.Named("n").With(zap.Int("a", 1)), bridged.Named("n").With(zap.Int("a", 1))
	own := testing.AllocsPerRun(1000, func() { plain.Info("charged", zap.String("customer", dyn.s)) })
	if got := testing.AllocsPerRun(1000, func() { bridged.Info("charged", zap.String("customer", dyn.s)) }); got > own {
		t.Errorf("named: %v allocations, zap has %v", got, own)
	}
}

// BenchmarkCall measures lines that nobody keeps, with zap's encoder of JSON and through
// the bridge.
func BenchmarkCall(b *testing.B) {
	plain, bridged := discarding(b)
	for _, c := range calls {
		for _, who := range []struct {
			name string
			l    *zap.Logger
		}{{"zap", plain}, {"bridge", bridged}} {
			b.Run(c.name+"/"+who.name, func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					c.call(who.l)
				}
			})
		}
	}
}
