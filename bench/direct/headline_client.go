package direct

import (
	"context"
	"encoding/binary"
	"sync"
	"time"

	"github.com/rollway/rollway/bench/internal/pace"
	"github.com/rollway/rollway/internal/promtext"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

// What became of a request.
const (
	unanswered byte = iota
	accepted
	dropped
)

// A client sends requests from as many goroutines as there are handlers.
type client struct {
	conn    *grpc.ClientConn
	period  time.Duration
	threads int
}

func dial(address string, period time.Duration, threads int) (*client, error) {
	conn, err := grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	return &client{conn, period, threads}, err
}

func (c *client) call(method string, value []byte) ([]byte, error) {
	var answer wrapperspb.BytesValue
	err := c.conn.Invoke(context.Background(), method, &wrapperspb.BytesValue{Value: value}, &answer)
	return answer.Value, err
}

// send sends the requests from number from on, one for each of answers, and
// notes what became of them. latency is from when each was due.
func (c *client) send(from int, answers []byte) (latency *promtext.Histogram, failed int, err error) {
	type request struct {
		number int
		due    time.Time
	}
	alarm, err := pace.NewAlarm()
	if err != nil {
		return nil, 0, err
	}
	defer alarm.Close()
	due := make(chan request, len(answers)) // the pace is kept however late they are
	var mu sync.Mutex
	latency = new(promtext.Histogram)
	var wg sync.WaitGroup
	for range c.threads {
		wg.Go(func() {
			own := new(promtext.Histogram)
			var failures int
			var firstErr error
			var number [8]byte
			for r := range due {
				binary.LittleEndian.PutUint64(number[:], uint64(r.number))
				answer, e := c.call(methodLog, number[:])
				own.Record(time.Since(r.due))
				switch {
				case e != nil || len(answer) != 1:
					failures++
					firstErr = e
				case answer[0] == 1:
					answers[r.number-from] = accepted
				default:
					answers[r.number-from] = dropped
				}
			}
			mu.Lock()
			defer mu.Unlock()
			latency.Add(own)
			failed += failures
			if err == nil {
				err = firstErr
			}
		})
	}
	wg.Go(func() {
		base := time.Now()
		for i := range answers {
			at := time.Duration(i) * c.period
			alarm.WaitUntil(base, at, pace.MaxSpin)
			due <- request{from + i, base.Add(at)}
		}
		close(due)
	})
	wg.Wait()
	return latency, failed, err
}
