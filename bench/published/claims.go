package published

import (
	"cmp"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/rollway/rollway/bench/allocstudy"
	"github.com/rollway/rollway/bench/direct"
	"github.com/rollway/rollway/bench/ingest"
	"github.com/rollway/rollway/bench/internal/measure"
	"github.com/rollway/rollway/bench/internal/report"
)

func publications() []publication {
	return []publication{
		{"buffering-strategies", bufferingClaims()},
		{"direct-io-logger-lld", directClaims()},
		{"zero-allocation-logging", allocationClaims()},
		{"relay-buffer-benchmark", relayClaims()},
		{"ingestion-p99", ingestionClaims()},
	}
}

func bufferingClaims() []claim {
	const (
		slab8      = "slab 8 × 64 KiB"
		slab2      = "slab 2 × 32 KiB"
		channel20  = "channel of 20 + buffer 64 KiB"
		channel1k  = "channel of 1000 + buffer 64 KiB"
		overSlab   = "channel of 20 + slab 8 × 64 KiB"
		anew       = "slab design as published 8 × 64 KiB"
		spikes10k  = "10000 lines a second"
		spikes50k  = "50000 lines a second"
		tenCallers = "10 producers"
	)
	row := func(r *results, name string) measure.Summary { return r.writers.At("published", name, "published") }
	longest := func(r *results, load, name string) time.Duration {
		return time.Duration(r.latency.Worst(load, name, tenCallers, "call_max"))
	}
	return []claim{
		{"a slab is faster than any channel of messages", "107 ns against 265 to 300 ns, 2.5 to 2.8 ×", func(r *results) (string, bool) {
			slab, best, worst := row(r, slab8).Ns, math.Inf(1), 0.0
			for _, name := range []string{channel20, channel1k, overSlab} {
				best, worst = min(best, row(r, name).Ns), max(worst, row(r, name).Ns)
			}
			return fmt.Sprintf("ours: %s ns against %s to %s ns, %.1f to %.1f ×", number(slab), number(best), number(worst), best/slab, worst/slab), slab < best
		}, holds, "a copy into a slab, against an allocation, a copy and a channel for each message"},
		{"2.7 × faster at the same memory budget", "132 ns with 64 KB in all, against 289 ns: 2.2 ×", func(r *results) (string, bool) {
			slab, channel := row(r, slab2).Ns, row(r, channel20).Ns
			return fmt.Sprintf("ours: %s ns against %s ns: %.1f ×", number(slab), number(channel), channel/slab), channel/slab >= 2.7
		}, fails, "its 2.7 is of 512 KB of slabs against 64 KB behind the channel; its own table has 2.2 for the same memory"},
		{"no allocation a message, with a channel one of 208 B", "0 and 1 (208 B)", func(r *results) (string, bool) {
			slab, channel := row(r, slab8), row(r, channel20)
			return fmt.Sprintf("ours: %s and %s (%.0f B)", report.Count(slab.Allocs), report.Count(channel.Allocs), channel.Bytes), slab.Allocs < 0.01 && channel.Allocs > 0.9
		}, holds, "what goes through the channel is a copy of the message"},
		{"a longer channel barely helps", "20 → 1000 messages: 289 → 265 ns, −8 %", func(r *results) (string, bool) {
			short, long := row(r, channel20).Ns, row(r, channel1k).Ns
			return fmt.Sprintf("%s → %s ns, %s", number(short), number(long), change(short, long)), long > 0.75*short
		}, either, "each message still costs its allocation and its send; here a longer channel also spares switches between goroutines, of which two processors have more"},
		{"a Write is a lock and a copy", "~17 ns", func(r *results) (string, bool) {
			ns := r.writers.At("raw", anew, "1 on 1").CallerNs
			return number(ns) + " ns with 256 B, the design written anew", ns < 50
		}, holds, "other machine, same order"},
		{"written directly, a call waits for the whole I/O spike", "the spike", func(r *results) (string, bool) {
			d := longest(r, spikes10k, "direct")
			return fmt.Sprintf("%s of a spike of 50 ms", milliseconds(d)), d > 40*time.Millisecond
		}, holds, "nothing is between the caller and the destination"},
		{"8 × 64 KB do not block at 10,000 × 256 B/s in a spike of 50 ms", "they take 200 ms", func(r *results) (string, bool) {
			d := longest(r, spikes10k, slab8)
			return fmt.Sprintf("ours: longest call %s", milliseconds(d)), d < 5*time.Millisecond
		}, holds, "the pool is larger than what comes in a spike"},
		{"8 × 64 KB take 40 ms at 50,000 × 256 B/s, no more", "calls wait in a longer spike", func(r *results) (string, bool) {
			d := longest(r, spikes50k, slab8)
			return fmt.Sprintf("ours: longest call %s in a spike of 50 ms", milliseconds(d)), d > time.Millisecond
		}, holds, "12.8 MB/s fill 512 KB in 41 ms; 13 slabs, by the formula of PLANNING.md, do not block"},
	}
}

func directClaims() []claim {
	row := func(r *results, experiment, name, mode string) measure.Summary {
		return r.direct[experiment].At(experiment, name, mode)
	}
	extra := func(r *results, experiment, name, mode, what string) float64 {
		return row(r, experiment, name, mode).Extra[what]
	}
	write := func(r *results, mode, what string) time.Duration {
		return time.Duration(extra(r, direct.CaseIO, direct.Published, mode, what))
	}
	return []claim{
		{"300 MB/s sustained", "300 MB/s for 10 min", func(r *results) (string, bool) {
			l := r.headline.Long()
			mb := float64(l.Verified.Bytes-l.Verified.Padding) / 1e6 / l.Seconds * float64(l.Requests) / float64(max(1, l.Server.Accepted+l.Server.Dropped))
			return fmt.Sprintf("ours: %.0f MB/s for %v", mb, time.Duration(l.Seconds*1e9).Round(time.Second)), mb >= 300
		}, holds, "the disk takes more"},
		{"few records are dropped under that load", "0.035 %", func(r *results) (string, bool) {
			s := r.headline.Long().Server
			given := float64(s.Accepted + s.Dropped)
			share := float64(s.Dropped) / given
			return fmt.Sprintf("ours: %s of %.0f, %d of those accepted lost", percent(share), given, r.headline.Long().Verified.Lost), share <= 0.00035
		}, holds, "ours has the same memory in small slabs, of which each is written as soon as it is full"},
		{"what is not dropped is written", "no loss but the drops counted", func(r *results) (string, bool) {
			lost, accepted := r.lossOf(direct.Published, direct.Large)
			pacedLost, paced := r.lossOf(direct.Published, direct.Headline)
			return fmt.Sprintf("written anew: %s of those accepted lost with %s, %s with %s", percent(lost/accepted), direct.Large, percent(pacedLost/paced), direct.Headline), lost+pacedLost == 0
		}, fails, "where buffers fill faster than they are written, one is handed to nobody, or emptied while it is filled"},
		{"requests hardly notice: gRPC p99 below 1 ms", "0.87 ms", func(r *results) (string, bool) {
			p99, ratio := r.headline.Long().GRPC.P99, r.headline.OnOff()
			return fmt.Sprintf("ours: %s, with -realtime; %.2f × that without logging", milliseconds(p99), ratio), p99 < time.Millisecond
		}, holds, "below 1 ms, but not without a trace: the copy of 300 KiB is most of what there is more"},
		{"the logger's part of the CPU is small", "15 to 25 % of a core, of 64 % in all", func(r *results) (string, bool) {
			c := r.headline.Long().Server.CPU
			return fmt.Sprintf("ours: %s of a core, of %s in all", percent(c.Logger+c.Flusher), percent(c.Total)), c.Logger+c.Flusher < 0.25
		}, holds, "the rest is gRPC"},
		{"memory stays below 8 GB", "5.5 GB", func(r *results) (string, bool) {
			m := r.headline.Long().Server.Memory
			return fmt.Sprintf("ours: %.0f MB, %.0f of it buffers", float64(m.Resident)/1e6, float64(m.Buffers)/1e6), m.Resident < 8e9
		}, holds, "the same buffers; most of the publication's memory is not explained in it"},
		{"a write takes 25 ms, predictably", "mean 25, p99 65, longest 479 ms", func(r *results) (string, bool) {
			mean, p99 := write(r, "writev", "write_mean"), write(r, "writev", "write_p99")
			w := r.headline.Long().Server.Write
			return fmt.Sprintf("written anew: mean %s, p99 %s; ours: mean %s, p99 %s, longest %s", milliseconds(mean), milliseconds(p99), milliseconds(r.headline.Long().Server.Mean), milliseconds(w.P99), milliseconds(w.Max)), mean <= 25*time.Millisecond && p99 <= 65*time.Millisecond
		}, either, "a write of the published design is a set of 64 MB, one of ours a slab of 2 MiB"},
		{"64 MB is the best size of the buffers", "drops 0.247 % at 8, 0.035 % at 64, 0.12 % at 512 MB", func(r *results) (string, bool) {
			drops := func(size string) float64 {
				return extra(r, direct.CaseBuffers, direct.Published, size, "refused") / extra(r, direct.CaseBuffers, direct.Published, size, "given")
			}
			small, best, large := drops("8 MB"), drops("64 MB"), drops("512 MB")
			text := fmt.Sprintf("written anew: %s at 8, %s at 64, %s at 512 MB", percent(small), percent(best), percent(large))
			if small+best+large == 0 {
				return undecided(text)
			}
			return text, best < small && best < large
		}, either, "more memory covers a longer stall of the disk; nothing here gets worse with it but the memory and the length of a write"},
		{"writes get longer with the size of the buffers", "25 ms at 64, 500 ms at 512 MB", func(r *results) (string, bool) {
			at := func(size string) time.Duration {
				return time.Duration(extra(r, direct.CaseBuffers, direct.Published, size, "write_mean"))
			}
			return fmt.Sprintf("written anew: %s at 64, %s at 512 MB", milliseconds(at("64 MB")), milliseconds(at("512 MB"))), at("512 MB") > 2*at("64 MB")
		}, holds, "a set is written at once"},
		{"12.5 threads a shard are best, more and fewer shards drop more", "100 threads: 0.545 % with 4 shards, 0.035 % with 8, 0.435 % with 16", func(r *results) (string, bool) {
			text, drops := "written anew:", map[string]float64{}
			for _, mode := range []string{"100T / 4S", "100T / 8S", "100T / 16S"} {
				drops[mode] = extra(r, direct.CaseShards, direct.Published, mode, "refused") / extra(r, direct.CaseShards, direct.Published, mode, "given")
				text += fmt.Sprintf(" %s with %s,", percent(drops[mode]), mode)
			}
			if text = text[:len(text)-1]; drops["100T / 4S"]+drops["100T / 8S"]+drops["100T / 16S"] == 0 {
				return undecided(text)
			}
			return text, drops["100T / 8S"] < drops["100T / 4S"] && drops["100T / 8S"] < drops["100T / 16S"]
		}, either, "on two processors at most two callers are in a shard at a time, however many threads there are"},
		{"a lock-free call is faster than one with a lock", "~100 ns, ~150 with a retry", func(r *results) (string, bool) {
			at := func(name string) float64 { return row(r, direct.CaseCall, name, direct.Contended).CallerNs }
			lock, locks, cas, published := at(direct.Mutex), at(direct.ShardedMutex), at(direct.CAS), at(direct.Published)
			return fmt.Sprintf("64 goroutines: one lock %s ns, one CAS %s ns; sharded locks %s ns, sharded CAS %s ns", number(lock), number(cas), number(locks), number(published)), cas < lock && published < locks
		}, either, "on two processors it is the shards that help; a lock that nobody holds costs little more than a CAS"},
		{"writev takes half the time of copying into one buffer first", "25 ms against 50", func(r *results) (string, bool) {
			copied, vectored := write(r, "copied batch", "write_mean"), write(r, "writev", "write_mean")
			return fmt.Sprintf("written anew: %s against %s", milliseconds(vectored), milliseconds(copied)), vectored < copied*2/3
		}, either, "the copy of 64 MB is spared, which is some ms here"},
		{"past the page cache writes take less, and vary less", "unpredictable through it, 25 ms past it", func(r *results) (string, bool) {
			longest := func(mode string) time.Duration {
				return time.Duration(r.direct[direct.CaseIO].Worst(direct.CaseIO, direct.Published, mode, "write_max"))
			}
			buffered, vectored := write(r, "buffered + fsync", "write_mean"), write(r, "writev", "write_mean")
			return fmt.Sprintf("written anew: mean %s, longest %s with fsync; %s and %s past it", milliseconds(buffered), milliseconds(longest("buffered + fsync")), milliseconds(vectored), milliseconds(longest("writev"))),
				vectored < buffered && longest("writev") < longest("buffered + fsync")
		}, holds, "the fsync has to write everything at once"},
		{"used again, memory spares the garbage collector", "2,370 cycles → 9 in 2 min", func(r *results) (string, bool) {
			at := func(name, mode string) map[string]float64 { return row(r, direct.CasePools, name, mode).Extra }
			anew, again := at(direct.Published, direct.TakenAnew), at(direct.Published, direct.UsedAgain)
			return fmt.Sprintf("written anew: %.0f → %.0f cycles; ours %.0f, in %.0f s at %.0f records a second",
				anew["gc_cycles"], again["gc_cycles"], at(direct.OwnDrop, direct.UsedAgain)["gc_cycles"], anew["seconds"], anew["given"]/anew["seconds"]), again["gc_cycles"] < anew["gc_cycles"]/10
		}, holds, "300 KiB a record were allocated"},
		{"a server that logs so has 1.2 GC cycles a minute", "12 in 10 min, and 9 in 2 at another place", func(r *results) (string, bool) {
			gc := r.headline.Long().Server.GC
			cycles := float64(gc.Cycles) / r.headline.Long().Seconds * 60
			text := fmt.Sprintf("%s, at %s MB/s allocated in a heap of %.0f MB", number(cycles), number(gc.AllocMBs), float64(r.headline.Long().Server.Memory.Heap)/1e6)
			if gc.Percent != 0 {
				text += fmt.Sprintf(" with GOGC=%d", gc.Percent)
			}
			for _, a := range gc.By[:min(2, len(gc.By))] {
				text += fmt.Sprintf("; %s %s MB/s", a.Function, number(a.MBs))
			}
			return text, cycles <= 1.2
		}, either, "gRPC is what allocates, for each request; the logger does not. How many cycles that makes is a matter of the heap: the publication's process has 5.5 GB. A higher GOGC trades memory for cycles"},
		{"a disk that hangs does not stop the callers", "the flusher waits, writes go to the other buffer", func(*results) (string, bool) {
			return undecided("ours, with a failover: `TestHungDisk` demands 0 dropped while the disk hangs for 8 s")
		}, either, "its own buffers last for 0.4 s at that rate; beyond that it takes another destination, which the publication does not have"},
		{"twice as many threads on a shard drop more", "50 threads: 2.5 × the drops with 4 shards instead of 8", func(r *results) (string, bool) {
			few := extra(r, direct.CaseShards, direct.Published, "50T / 4S", "refused") / extra(r, direct.CaseShards, direct.Published, "50T / 4S", "given")
			many := extra(r, direct.CaseShards, direct.Published, "50T / 8S", "refused") / extra(r, direct.CaseShards, direct.Published, "50T / 8S", "given")
			text := fmt.Sprintf("written anew: %s with 4, %s with 8", percent(few), percent(many))
			if few+many == 0 {
				return undecided(text)
			}
			return text, few > many
		}, either, "a shard with fewer threads fills later"},
		{"a write for each shard takes as long as the copied batch", "50 ms and more, both", func(r *results) (string, bool) {
			each, copied := write(r, "a write for each", "write_mean"), write(r, "copied batch", "write_mean")
			return fmt.Sprintf("written anew: %s and %s", milliseconds(each), milliseconds(copied)), float64(each) > 0.8*float64(copied)
		}, either, "eight writes of 8 MB cost less here than a copy of 64 MB"},
		{"the call allocates nothing", "0", func(r *results) (string, bool) {
			s := row(r, direct.CaseCall, direct.Published, direct.Uncontended)
			return fmt.Sprintf("written anew: %s a call", report.Count(s.Allocs)), s.Allocs < 0.01
		}, holds, "it copies into memory that is there"},
	}
}

func allocationClaims() []claim {
	all := []claim{
		{"a pool makes the call faster", "21.30 → 19.17 ns", func(r *results) (string, bool) {
			versions := r.alloc.Toolchains()
			text, faster := "", false
			for _, v := range versions {
				plain, pooled := r.allocTimes.At("plain/const", v, allocstudy.Parallel).Ns, r.allocTimes.At("pooled/const", v, allocstudy.Parallel).Ns
				text, faster = text+fmt.Sprintf("%s → %s ns with %s; ", number(plain), number(pooled), v), pooled < plain
			}
			return text[:len(text)-2], faster
		}, holds, "with today's Go, by a tenth or so; with older ones the version without a pool may be the quicker one"},
	}
	for _, c := range allocstudy.Claims() {
		all = append(all, claim{c.Says, "as said", func(r *results) (string, bool) {
			var with []string
			today := false
			for _, v := range r.alloc.Toolchains() {
				today = c.Holds(func(name string) allocstudy.Count { return r.alloc.Counted(name, v).Rounded() })
				if today {
					with = append(with, v)
				}
			}
			return "holds with " + cmp.Or(strings.Join(with, ", "), "no version of Go"), today
		}, either, c.Because})
	}
	return all
}

func relayClaims() []claim {
	const (
		small, large = "pool 4 KiB", "pool 16 KiB"
		stack        = "stack 16 KiB"
		pipe         = "in-memory pipe"
	)
	reads := func(s measure.Summary) float64 { return max(s.Extra["reads"], s.Extra["reads_gib"]) }
	both := func(r *results, name, mode string, of func(measure.Summary) float64) (float64, float64) {
		return of(r.relay.At(name, small, mode)), of(r.relay.At(name, large, mode))
	}
	alike := func(a, b float64) bool { return a/b > 1/1.1 && a/b < 1.1 }
	rate := func(s measure.Summary) float64 { return 1e3 / s.Ns } // MB/s of ns a byte
	memory := func(r *results, name, mode, what string) float64 {
		extra := r.relay.At("memory over N", name, mode).Extra
		most := 0
		for figure := range extra {
			if n, err := strconv.Atoi(strings.TrimPrefix(figure, what+"_")); err == nil {
				most = max(most, n)
			}
		}
		return extra[fmt.Sprint(what, "_", most)] / float64(max(1, most))
	}
	return []claim{
		{"the size of the buffer does not change the number of reads", "1,281 with 4 and 16 KB, in-memory pipe", func(r *results) (string, bool) {
			p4, p16 := both(r, "B: download, raw", pipe+", raw", reads)
			s4, s16 := both(r, "download", "sockets", reads)
			return fmt.Sprintf("pipe %.0f and %.0f; sockets %.0f and %.0f a GiB", p4, p16, s4, s16), alike(p4, p16) && alike(s4, s16)
		}, fails, "a pipe hands one Write to one Read; a socket gathers what has arrived, and a larger buffer takes more of it at a time"},
		{"nor the throughput", "1,946 to 1,950 and 1,935 to 1,948 MB/s", func(r *results) (string, bool) {
			p4, p16 := both(r, "B: download, raw", pipe+", raw", rate)
			s4, s16 := both(r, "download", "sockets", rate)
			return fmt.Sprintf("pipe %.0f and %.0f MB/s; sockets %.0f and %.0f", p4, p16, s4, s16), alike(p4, p16) && alike(s4, s16)
		}, fails, "on sockets each read is a system call"},
		{"with TLS reads are the same", "322 with 4 and 16 KB", func(r *results) (string, bool) {
			s4, s16 := both(r, "upload", "sockets, TLS", reads)
			return fmt.Sprintf("upload on sockets %.0f and %.0f a GiB", s4, s16), alike(s4, s16)
		}, holds, "crypto/tls reads by records into a buffer of its own"},
		{"small messages: the size does not matter", "10,001 reads with both", func(r *results) (string, bool) {
			p4, p16 := both(r, "D: small messages down", pipe+", raw", reads)
			s4, s16 := both(r, "small messages down", "sockets", reads)
			return fmt.Sprintf("pipe %.0f and %.0f reads; sockets %.0f and %.0f a GiB", p4, p16, s4, s16), alike(p4, p16) && alike(s4, s16)
		}, either, "on sockets several messages come with one read, more of them with a larger buffer or a slower reader"},
		{"writes of 1,460 bytes: the size does not matter", "7,184 reads with both", func(r *results) (string, bool) {
			p4, p16 := both(r, "C: media download, 1,460-byte writes", pipe+", raw", reads)
			s4, s16 := both(r, "download, 1,460-byte writes", "sockets", reads)
			return fmt.Sprintf("pipe %.0f and %.0f reads; sockets %.0f and %.0f a GiB", p4, p16, s4, s16), alike(p4, p16) && alike(s4, s16)
		}, either, "as with small messages"},
		{"with TLS the throughput is the same", "7,543 to 7,823 MB/s with 4 and 16 KB", func(r *results) (string, bool) {
			s4, s16 := both(r, "upload", "sockets, TLS", rate)
			return fmt.Sprintf("upload on sockets %.0f and %.0f MB/s", s4, s16), alike(s4, s16)
		}, either, "a record is opened into the relay's buffer, so that a small one takes several writes"},
		{"a pool instead of a buffer on the stack saves 96.5 % of memory", "2.4 MB instead of 65.5 with 2000", func(r *results) (string, bool) {
			saved := func(mode string) float64 {
				of := func(name string) float64 { return memory(r, name, mode, "stack") + memory(r, name, mode, "heap") }
				return 1 - of(large)/of(stack)
			}
			alone, sockets := saved("goroutines alone"), saved("sockets")
			return fmt.Sprintf("%s with goroutines that hold no connection, %s with idle connections on sockets", whole(alone), whole(sockets)), sockets > 0.86
		}, fails, "an idle relay waits in Read with its buffer in its hand, so a pool saves nothing; its goroutines had given theirs back"},
		{"4 and 16 KB in the pool are the same for memory", "2.3 and 2.4 MB of stacks", func(r *results) (string, bool) {
			of := func(name string) float64 {
				return memory(r, name, "sockets", "stack") + memory(r, name, "sockets", "heap")
			}
			a, b := of(small), of(large)
			return fmt.Sprintf("%.1f and %.1f KiB a connection on sockets", a/1024, b/1024), alike(a, b)
		}, fails, "each direction of an idle connection holds its buffer"},
		{"after a burst the pool holds idle memory", "5.6 to 13.9 MB after 500", func(r *results) (string, bool) {
			idle := func(name string) float64 { return r.relay.At("two bursts of 500", name, "sockets").Extra["idle_heap"] }
			pool, own := idle(large), idle(stack)
			return fmt.Sprintf("%.1f MB with a pool, %.1f with the stack, 16 KiB on sockets", pool/1e6, own/1e6), pool > 1e6 && pool > 1.1*own
		}, either, "the buffer of the stack version is moved to the heap as well: both wait for a collection"},
		{"the size of the buffer does not change the CPU time", "11,004 and 10,952 MB/s with 4 and 16 KB", func(r *results) (string, bool) {
			s4, s16 := both(r, "upload", "sockets", func(s measure.Summary) float64 { return s.CPUNs })
			t4, t16 := both(r, "upload", "sockets, TLS", func(s measure.Summary) float64 { return s.CPUNs })
			return fmt.Sprintf("upload on sockets: 4 KiB takes %.2f × the CPU of 16 KiB, with TLS %.2f ×", s4/s16, t4/t16), alike(s4, s16) && alike(t4, t16)
		}, fails, "a system call for each read and each write, four times as many of them"},
		{"a pool costs no CPU that can be measured", "7.3 ns a Get and Put; 11,018 and 10,952 MB/s", func(r *results) (string, bool) {
			ns := r.relay.At("a buffer taken and given back", "sync.Pool.Get and Put, 16 KiB", pipe).Ns
			a, b := rate(r.relay.At("10 MB relay", stack, pipe+", raw")), rate(r.relay.At("10 MB relay", large, pipe+", raw"))
			return fmt.Sprintf("%s ns; stack %.0f, pool %.0f MB/s", number(ns), a, b), alike(a, b)
		}, holds, "once a connection"},
	}
}

func ingestionClaims() []claim {
	body := func(r *results, name string) measure.Summary {
		return r.requests.At(ingest.CaseBenchmark, name, "serial")
	}
	benchmark := func(of func(measure.Summary) float64, unit string) func(*results) (string, bool) {
		return func(r *results) (string, bool) {
			before, after := of(body(r, ingest.Naive)), of(body(r, ingest.Pooled))
			return fmt.Sprintf("%s → %s%s, %s", number(before), number(after), unit, change(before, after)), after < before
		}
	}
	const rps = 15000
	loaded := func(of func(ingest.Sent) time.Duration) func(*results) (string, bool) {
		return func(r *results) (string, bool) {
			before, after := of(r.loadOf(ingest.Naive, rps).Sent), of(r.loadOf(ingest.Pooled, rps).Sent)
			own := of(r.loadOf(ingest.Buffered, rps).Sent)
			return fmt.Sprintf("%s → %s; %s %s", milliseconds(before), milliseconds(after), ingest.Buffered, milliseconds(own)), after < before
		}
	}
	return []claim{
		{"pools take less time", "145 → 89 µs, −38 %", benchmark(func(s measure.Summary) float64 { return s.Ns / 1e3 }, " µs"), holds, "the builders and their maps are spared; most of the time is encoding/json's, which pools do not change"},
		{"pools allocate less memory", "128 → 62 KB, −51 %", benchmark(func(s measure.Summary) float64 { return s.Bytes / 1e3 }, " KB"), holds, "its map for 16 fields is more than a KB for each event"},
		{"pools allocate half as often", "420 → 210, −50 %", benchmark(func(s measure.Summary) float64 { return s.Allocs }, ""), holds, "fewer, but not by half: decoding into maps is most of them, in both versions. 420 for 100 events is about one for each map and builder, which its own code cannot reach"},
		{"p99 at 15,000 requests/s gets better", "280–400 → 95–140 ms", loaded(func(s ingest.Sent) time.Duration { return s.Latency.P99 }), holds, "less work for each request"},
		{"p95 gets better", "90 → 42 ms", loaded(func(s ingest.Sent) time.Duration { return s.Latency.P95 }), holds, "as p99"},
		{"the mean gets better", "16 → 11 ms", loaded(func(s ingest.Sent) time.Duration { return s.Latency.Mean }), holds, "as p99"},
		{"fewer GC cycles", "frequent → reduced", func(r *results) (string, bool) {
			before, after := r.loadOf(ingest.Naive, rps), r.loadOf(ingest.Pooled, rps)
			return fmt.Sprintf("%d → %d in %.0f s; %s %d", before.GCCycles, after.GCCycles, before.Seconds, ingest.Buffered, r.loadOf(ingest.Buffered, rps).GCCycles), after.GCCycles < before.GCCycles*9/10
		}, either, "the heap stays small in both: most of what is allocated is encoding/json's"},
	}
}

func number(v float64) string { return report.Number(v) }

func milliseconds(d time.Duration) string { return report.Millis(d) }

// whole is a share in whole percents.
func whole(share float64) string { return fmt.Sprintf("%.0f %%", math.Round(100*share)+0) }

func percent(share float64) string { return report.Percent(share, 1) }

// change is by how much after is more than before.
func change(before, after float64) string {
	return strings.Replace(fmt.Sprintf("%+.0f %%", 100*(after/before-1)), "-", "−", 1)
}
