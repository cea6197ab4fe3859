package direct

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"runtime/pprof"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rollway/rollway/bench/internal/child"
	"github.com/rollway/rollway/bench/internal/measure"
	"github.com/rollway/rollway/file"
	"github.com/rollway/rollway/internal/promtext"
	"github.com/rollway/rollway/slab"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

// The service has three methods. Log takes the number of a request, logs the
// record of that number, and answers 1 if it was accepted or else 0. Begin and
// End are around what is measured.
const (
	serviceName = "rollway.bench.Headline"
	methodLog   = "/" + serviceName + "/Log"
	methodBegin = "/" + serviceName + "/Begin"
	methodEnd   = "/" + serviceName + "/End"
)

type server struct {
	job    job
	logger *own  // nil without logging
	copies *ring // nil if records are not to be copied
	free   chan *handler
	all    []*handler
	begin  baseline
	report ServerReport

	stop    chan struct{} // ends sample
	stopped sync.WaitGroup
}

// A handler is what one request uses at a time.
type handler struct {
	record         []byte
	call           promtext.Histogram
	taken, dropped int
}

// baseline is the state at Begin.
type baseline struct {
	at      time.Time
	meter   measure.Meter
	memory  runtime.MemStats
	profile bytes.Buffer
}

// serve runs the server until in ends. It says its address first and its report
// last.
func serve(j job, in io.Reader, out io.Writer) error {
	s := &server{job: j, free: make(chan *handler, j.Threads), stop: make(chan struct{})}
	for range j.Threads {
		h := &handler{record: newRecord(j.Bytes)}
		s.all = append(s.all, h)
		s.free <- h
	}
	if j.Logging {
		c := Config{Path: filepath.Join(j.Dir, current), BufferSize: j.Buffer, Shards: j.Shards, Flush: j.Flush}
		var err error
		if s.logger, err = openOwn(c, ownOptions{mode: file.Direct, full: slab.Drop, max: j.Segment, sets: j.Sets}); err != nil {
			return err
		}
	}
	if j.Copies {
		s.copies = &ring{memory: make([]byte, j.Buffer*j.Sets)}
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	g := grpc.NewServer(grpc.NumStreamWorkers(uint32(j.Threads)))
	g.RegisterService(&grpc.ServiceDesc{
		ServiceName: serviceName,
		HandlerType: (*any)(nil),
		Methods:     []grpc.MethodDesc{method("Log", s.log), method("Begin", s.started), method("End", s.ended)},
	}, s)
	failed := make(chan error, 1)
	go func() { failed <- g.Serve(listener) }()
	answer := json.NewEncoder(out)
	if err := answer.Encode(listener.Addr().String()); err != nil {
		return err
	}
	io.Copy(io.Discard, in)
	g.GracefulStop()
	err = <-failed
	if s.logger != nil {
		err = errors.Join(err, s.logger.Close())
		s.sumUp()
	}
	return errors.Join(err, answer.Encode(s.report))
}

// method describes a unary method of bytes.
func method(name string, f func([]byte) ([]byte, error)) grpc.MethodDesc {
	return grpc.MethodDesc{MethodName: name, Handler: func(_ any, _ context.Context, decode func(any) error, _ grpc.UnaryServerInterceptor) (any, error) {
		var request wrapperspb.BytesValue
		if err := decode(&request); err != nil {
			return nil, err
		}
		answer, err := f(request.Value)
		return &wrapperspb.BytesValue{Value: answer}, err
	}}
}

var taken, refused = []byte{1}, []byte{0}

// log makes the record with or without logging.
func (s *server) log(request []byte) ([]byte, error) {
	h := <-s.free
	defer func() { s.free <- h }()
	fillRecord(h.record, 0, int(binary.LittleEndian.Uint64(request)))
	if s.copies != nil {
		s.copies.put(h.record)
	}
	if s.logger == nil {
		return taken, nil
	}
	begin := time.Now()
	err := s.logger.LogBytes(h.record)
	h.call.Record(time.Since(begin))
	switch {
	case err == nil:
		h.taken++
		return taken, nil
	case errors.Is(err, ErrFull):
		h.dropped++
		return refused, nil
	}
	return nil, err
}

// A ring keeps the latest records, in memory as large as the logger's buffers: it
// costs what any logger has to do that does not let its caller wait for the disk.
type ring struct {
	memory []byte
	used   atomic.Uint64
}

func (r *ring) put(record []byte) {
	places := uint64(len(r.memory) / len(record))
	at := (r.used.Add(1) - 1) % places
	copy(r.memory[at*uint64(len(record)):], record)
}

// started begins the measurement: it resets all counts except those of records.
func (s *server) started([]byte) ([]byte, error) {
	for range s.all {
		h := <-s.free
		h.call = promtext.Histogram{}
		defer func() { s.free <- h }()
	}
	runtime.GC()
	runtime.ReadMemStats(&s.begin.memory)
	s.begin.at, s.begin.meter = time.Now(), measure.StartMeter()
	s.stopped.Go(s.sample)
	return nil, pprof.StartCPUProfile(&s.begin.profile)
}

// ended ends it.
func (s *server) ended([]byte) ([]byte, error) {
	pprof.StopCPUProfile()
	took, own, _ := s.begin.meter.Read()
	close(s.stop)
	s.stopped.Wait()
	var now runtime.MemStats
	runtime.ReadMemStats(&now)
	before := &s.begin.memory
	gc := GC{
		Cycles: int(now.NumGC - before.NumGC), Pause: time.Duration(now.PauseTotalNs - before.PauseTotalNs),
		AllocMBs: float64(now.TotalAlloc-before.TotalAlloc) / 1e6 / took.Seconds(),
	}
	for i := before.NumGC; i < now.NumGC && now.NumGC-i <= uint32(len(now.PauseNs)); i++ {
		gc.MaxPause = max(gc.MaxPause, time.Duration(now.PauseNs[i%uint32(len(now.PauseNs))]))
	}
	gc.Percent = debug.SetGCPercent(-1)
	debug.SetGCPercent(gc.Percent)
	s.report.GC = gc
	s.report.Memory.Payload = len(s.all) * s.job.Bytes
	s.report.Memory.Stacks = int(now.StackInuse)
	cpu, err := split(&s.begin.profile, own.Seconds()/took.Seconds())
	s.report.CPU = cpu
	return nil, err
}

// sumUp takes what handlers and the logger have counted.
func (s *server) sumUp() {
	var call promtext.Histogram
	for _, h := range s.all {
		call.Add(&h.call)
		s.report.Accepted += h.taken
		s.report.Dropped += h.dropped
	}
	s.report.Call = measure.QuantilesOf(&call)
	f := s.logger.Figures()
	s.report.Write, s.report.Mean, s.report.Flushes, s.report.Memory.Buffers = f.Write, f.Write.Mean, f.Flushes, f.Memory
}

// sample takes a Point twice a second.
func (s *server) sample() {
	tick := time.NewTicker(500 * time.Millisecond)
	defer tick.Stop()
	var before slab.Stats
	last := s.begin.at
	if s.logger != nil {
		before = s.logger.Stats()
	}
	for {
		select {
		case <-s.stop:
			return
		case <-tick.C:
		}
		now := time.Now()
		resident, _ := child.Resident(os.Getpid()) // 0 where the system does not tell
		p := Point{Second: now.Sub(s.begin.at).Seconds(), Resident: int(resident)}
		if s.logger != nil {
			stats := s.logger.Stats()
			p.MBs = float64(stats.Bytes-before.Bytes) / 1e6 / now.Sub(last).Seconds()
			p.Dropped = int(s.logger.refused.Load() + stats.Dropped.Total())
			before = stats
		}
		last = now
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		s.report.Memory.Heap = max(s.report.Memory.Heap, int(m.HeapInuse))
		s.report.Memory.Resident = max(s.report.Memory.Resident, p.Resident)
		s.report.Series = append(s.report.Series, p)
	}
}
