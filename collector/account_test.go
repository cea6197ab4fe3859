package collector

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"

	"github.com/rollway/rollway/collector/config"
	"github.com/rollway/rollway/collector/health"
	"github.com/rollway/rollway/collector/journal"
	"github.com/rollway/rollway/collector/ledger"
	"github.com/rollway/rollway/collector/normalize"
	"github.com/rollway/rollway/collector/receiver"
	"github.com/rollway/rollway/internal/disktest"
)

// In every ledger that is taken under load, with rejected and repeated events, a
// sink and retention, all counts agree; the last one does to the record.
func TestLedgerUnderLoad(t *testing.T) {
	cluster, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(1, "logs"))
	if err != nil {
		t.Fatal(err)
	}
	defer cluster.Close()
	cfg := testConfig(t)
	cfg.Journal.SegmentSize, cfg.Journal.RetainSize = 64<<10, 256<<10
	cfg.Kafka.Brokers, cfg.Kafka.Topic = strings.Join(cluster.ListenAddrs(), " "), "logs"
	cfg.Kafka.WhenFull, cfg.Journal.Compression = config.DropOldest, config.NoCompression
	r := run(t, cfg)
	var sending sync.WaitGroup
	for c := range 4 {
		sending.Go(func() {
			for i := range 100 {
				body := fmt.Sprintf(`[{"msg":"%d of %d"},{"msg":"%s"},7]`, i, c, strings.Repeat("long ", 200))
				for range 1 + i%3 {
					if a, err := r.postKeyed(fmt.Sprintf("%d-%d", c, i), body); err != nil || a.code != 200 {
						t.Errorf("%+v, %v", a, err)
					}
				}
			}
		})
	}
	stop := make(chan struct{})
	var asking sync.WaitGroup
	asking.Go(func() {
		for n := 0; ; n++ {
			select {
			case <-stop:
				return
			default:
			}
			if l := r.takeLedger(); !ledger.Agree(l.Counts()) {
				t.Errorf("ledger %d: %+v", n, l.Counts())
				return
			}
			time.Sleep(time.Millisecond)
		}
	})
	sending.Wait()
	close(stop)
	asking.Wait()
	for end := time.Now().Add(time.Minute); r.Stats().Sinks[0].Pending > 0 || r.Stats().Journal.DeletedRecords == 0; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%+v", r.Stats())
		}
	}
	if err := r.stop(); err != nil {
		t.Fatal(err)
	}
	l, err := ledger.Load(cfg.Data)
	if err != nil || l == nil {
		t.Fatal(l, err)
	}
	a, err := journal.Audit(JournalFolder(cfg.Data), journal.AuditOptions{From: l.First, KeysFrom: l.Start})
	if err != nil {
		t.Fatal(err)
	}
	checks := append(append(l.Counts(), l.Records(&a, l.First)...), ledger.Sound(&a, l.First)...)
	if !ledger.Agree(checks) || l.InHand > 0 || l.Received != 2388 || l.Outcomes[ledger.Stored] != 800 || l.Outcomes[ledger.Duplicate] != 792 || l.Deleted == 0 {
		t.Errorf("%+v\n%+v", l, checks)
	}
}

// A repeated batch whose first was not made durable is a duplicate all the same.
func TestRepeatedWithoutFsync(t *testing.T) {
	var failing atomic.Bool
	mem := disktest.NewMem()
	j, err := journal.Open("/j", journal.Options{Disk: &disktest.Faulty{FS: mem, Hook: func(op disktest.Op) disktest.Fault {
		if op.Kind == disktest.Sync && failing.Load() {
			return disktest.Fault{Err: syscall.EIO}
		}
		return disktest.Fault{}
	}}})
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	c := &Collector{config: testConfig(t), journal: j, health: health.New(health.Options{})}
	failing.Store(true)
	for again := range 2 {
		var b normalize.Batch
		if err := normalize.New(normalize.Limits{}).Body(&b, []byte(`{"msg":"hello"}`), time.Now()); err != nil {
			t.Fatal(err)
		}
		s, err := backend{c}.Store(context.Background(), &b, receiver.StoreOptions{Key: "k", Durability: "synced"})
		if !errors.Is(err, receiver.ErrNotSynced) || s.Records != 1 || s.First != 0 || s.Duplicate != (again > 0) {
			t.Errorf("%v, %+v", err, s)
		}
	}
	if s := j.Stats(); s.Records != 1 || s.DuplicateRecords != 1 {
		t.Errorf("%+v", s)
	}
}
