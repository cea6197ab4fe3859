package syslog

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// vectors are messages of the RFCs and of senders, with the line that each becomes.
// Times that have no year are those nearest to received, 2026-01-01T00:30:00Z, at most a week after it.
var vectors = []struct{ from, message, want string }{
	// RFC 5424, 6.5.
	{"RFC 5424, example 1", "<34>1 2003-10-11T22:14:15.003Z mymachine.example.com su - ID47 - \ufeff'su root' failed for lonvick on /dev/pts/8",
		`{"time":"2003-10-11T22:14:15.003Z","level":"FATAL","msg":"'su root' failed for lonvick on /dev/pts/8","service":"su","attrs":{"facility":"auth","host":"mymachine.example.com","msgid":"ID47"}}`},
	{"RFC 5424, example 2", "<165>1 2003-08-24T05:14:15.000003-07:00 192.0.2.1 myproc 8710 - - %% It's time to make the do-nuts.",
		`{"time":"2003-08-24T12:14:15.000003Z","level":"INFO+2","msg":"%% It's time to make the do-nuts.","service":"myproc","attrs":{"facility":"local4","host":"192.0.2.1","procid":"8710"}}`},
	{"RFC 5424, example 3", "<165>1 2003-10-11T22:14:15.003Z mymachine.example.com evntslog - ID47 [exampleSDID@32473 iut=\"3\" eventSource=\"Application\" eventID=\"1011\"] \ufeffAn application event log entry...",
		`{"time":"2003-10-11T22:14:15.003Z","level":"INFO+2","msg":"An application event log entry...","service":"evntslog","attrs":{"facility":"local4","host":"mymachine.example.com","msgid":"ID47","exampleSDID@32473":{"iut":"3","eventSource":"Application","eventID":"1011"}}}`},
	{"RFC 5424, example 4", `<165>1 2003-10-11T22:14:15.003Z mymachine.example.com evntslog - ID47 [exampleSDID@32473 iut="3" eventSource="Application" eventID="1011"][examplePriority@32473 class="high"]`,
		`{"time":"2003-10-11T22:14:15.003Z","level":"INFO+2","service":"evntslog","attrs":{"facility":"local4","host":"mymachine.example.com","msgid":"ID47","exampleSDID@32473":{"iut":"3","eventSource":"Application","eventID":"1011"},"examplePriority@32473":{"class":"high"}}}`},
	// RFC 5424, 6.2.3.1: its times; the fifth has more digits than it allows.
	{"RFC 5424, time 1", "<14>1 1985-04-12T23:20:50.52Z h a - - - x",
		`{"time":"1985-04-12T23:20:50.52Z","level":"INFO","msg":"x","service":"a","attrs":{"facility":"user","host":"h"}}`},
	{"RFC 5424, time 2", "<14>1 1985-04-12T19:20:50.52-04:00 h a - - - x",
		`{"time":"1985-04-12T23:20:50.52Z","level":"INFO","msg":"x","service":"a","attrs":{"facility":"user","host":"h"}}`},
	{"RFC 5424, time 3", "<14>1 2003-10-11T22:14:15.003Z h a - - - x",
		`{"time":"2003-10-11T22:14:15.003Z","level":"INFO","msg":"x","service":"a","attrs":{"facility":"user","host":"h"}}`},
	{"RFC 5424, time 4", "<14>1 2003-08-24T05:14:15.000003-07:00 h a - - - x",
		`{"time":"2003-08-24T12:14:15.000003Z","level":"INFO","msg":"x","service":"a","attrs":{"facility":"user","host":"h"}}`},
	{"RFC 5424, time 5", "<14>1 2003-08-24T05:14:15.000000003-07:00 h a - - - x",
		`{"time":"2003-08-24T12:14:15.000000003Z","level":"INFO","msg":"x","service":"a","attrs":{"facility":"user","host":"h"}}`},
	// RFC 5424, 6.3.5: its structured data; the third and fourth are not of the form.
	{"RFC 5424, data 1", `<14>1 - h a - - [exampleSDID@32473 iut="3" eventSource="Application" eventID="1011"] x`,
		`{"time":"2026-01-01T00:30:00.000005Z","level":"INFO","msg":"x","service":"a","attrs":{"facility":"user","host":"h","exampleSDID@32473":{"iut":"3","eventSource":"Application","eventID":"1011"}}}`},
	{"RFC 5424, data 2", `<14>1 - h a - - [exampleSDID@32473 iut="3" eventSource="Application" eventID="1011"][examplePriority@32473 class="high"] x`,
		`{"time":"2026-01-01T00:30:00.000005Z","level":"INFO","msg":"x","service":"a","attrs":{"facility":"user","host":"h","exampleSDID@32473":{"iut":"3","eventSource":"Application","eventID":"1011"},"examplePriority@32473":{"class":"high"}}}`},
	{"RFC 5424, data 3", `<14>1 - h a - - [exampleSDID@32473 iut="3" eventSource="Application" eventID="1011"] [examplePriority@32473 class="high"] x`,
		`{"time":"2026-01-01T00:30:00.000005Z","level":"INFO","msg":"[examplePriority@32473 class=\"high\"] x","service":"a","attrs":{"facility":"user","host":"h","exampleSDID@32473":{"iut":"3","eventSource":"Application","eventID":"1011"}}}`},
	{"RFC 5424, data 4", `<14>1 - h a - - [ exampleSDID@32473 iut="3" eventSource="Application" eventID="1011"][examplePriority@32473 class="high"] x`,
		`{"time":"2026-01-01T00:30:00.000005Z","level":"INFO","msg":"[ exampleSDID@32473 iut=\"3\" eventSource=\"Application\" eventID=\"1011\"][examplePriority@32473 class=\"high\"] x","service":"a","attrs":{"facility":"user","host":"h"}}`},
	{"RFC 5424, data 5", `<14>1 - h a - - [sigSig ver="1" rsID="1234" iut="3" signature="..."] x`,
		`{"time":"2026-01-01T00:30:00.000005Z","level":"INFO","msg":"x","service":"a","attrs":{"facility":"user","host":"h","sigSig":{"ver":"1","rsID":"1234","iut":"3","signature":"..."}}}`},
	{"RFC 5424, timeQuality", `<14>1 - h a - - [timeQuality tzKnown="1" isSynced="1" syncAccuracy="60000000"][origin ip="192.0.2.1" ip="192.0.2.129"][meta sequenceId="1"] x`,
		`{"time":"2026-01-01T00:30:00.000005Z","level":"INFO","msg":"x","service":"a","attrs":{"facility":"user","host":"h","timeQuality":{"tzKnown":"1","isSynced":"1","syncAccuracy":"60000000"},"origin":{"ip":"192.0.2.1","ip":"192.0.2.129"},"meta":{"sequenceId":"1"}}}`},
	// RFC 3164, 5.4; the second is what it has a relay make of a text, the third
	// and fourth have times of no fixed form.
	{"RFC 3164, example 1", "<34>Oct 11 22:14:15 mymachine su: 'su root' failed for lonvick on /dev/pts/8",
		`{"time":"2025-10-11T22:14:15Z","level":"FATAL","msg":"'su root' failed for lonvick on /dev/pts/8","service":"su","attrs":{"facility":"auth","host":"mymachine"}}`},
	{"RFC 3164, example 2", "Use the BFG!",
		`{"time":"2026-01-01T00:30:00.000005Z","level":"INFO","msg":"Use the BFG!","attrs":{"peer":"192.0.2.7"}}`},
	{"RFC 3164, example 2, relayed", "<13>Feb  5 17:32:18 10.0.0.99 Use the BFG!",
		`{"time":"2025-02-05T17:32:18Z","level":"INFO+2","msg":"Use the BFG!","attrs":{"facility":"user","host":"10.0.0.99"}}`},
	{"RFC 3164, example 3", "<165>Aug 24 05:34:00 CST 1987 mymachine myproc[10]: %% It's time to make the do-nuts.  %%  Ingredients: Mix=OK, Jelly=OK # Devices: Mixer=OK, Jelly_Injector=OK, Frier=OK # Transport: Conveyer1=OK, Conveyer2=OK # %%",
		`{"time":"2025-08-24T05:34:00Z","level":"INFO+2","msg":"1987 mymachine myproc[10]: %% It's time to make the do-nuts.  %%  Ingredients: Mix=OK, Jelly=OK # Devices: Mixer=OK, Jelly_Injector=OK, Frier=OK # Transport: Conveyer1=OK, Conveyer2=OK # %%","attrs":{"facility":"local4","host":"CST"}}`},
	{"RFC 3164, example 3, relayed", "<165>Aug 24 05:34:00 192.0.2.3 CST 1987 mymachine myproc[10]: %% It's time to make the do-nuts.",
		`{"time":"2025-08-24T05:34:00Z","level":"INFO+2","msg":"CST 1987 mymachine myproc[10]: %% It's time to make the do-nuts.","attrs":{"facility":"local4","host":"192.0.2.3"}}`},
	{"RFC 3164, example 4", "<0>1990 Oct 22 10:52:01 TZ-6 scapegoat.dmz.example.org 10.1.2.3 sched[0]: That's All Folks!",
		`{"time":"2026-01-01T00:30:00.000005Z","level":"FATAL+2","msg":"1990 Oct 22 10:52:01 TZ-6 scapegoat.dmz.example.org 10.1.2.3 sched[0]: That's All Folks!","attrs":{"facility":"kern","peer":"192.0.2.7"}}`},
	{"RFC 3164, example 4, relayed", "<0>Oct 22 10:52:12 scapegoat 1990 Oct 22 10:52:01 TZ-6 scapegoat.dmz.example.org 10.1.2.3 sched[0]: That's All Folks!",
		`{"time":"2025-10-22T10:52:12Z","level":"FATAL+2","msg":"1990 Oct 22 10:52:01 TZ-6 scapegoat.dmz.example.org 10.1.2.3 sched[0]: That's All Folks!","attrs":{"facility":"kern","host":"scapegoat"}}`},
	// What these programs send, some of it kept in testdata too.
	{"util-linux logger 2.38", `<140>1 2025-11-21T15:27:23.123456+00:00 vm backup 13275 - [timeQuality tzKnown="1" isSynced="0"] disk is full`,
		`{"time":"2025-11-21T15:27:23.123456Z","level":"WARN","msg":"disk is full","service":"backup","attrs":{"facility":"local1","host":"vm","procid":"13275","timeQuality":{"tzKnown":"1","isSynced":"0"}}}`},
	{"util-linux logger 2.38, --rfc3164", "<140>Nov 21 15:27:23 vm backup[13275]: disk is full",
		`{"time":"2025-11-21T15:27:23Z","level":"WARN","msg":"disk is full","service":"backup","attrs":{"facility":"local1","host":"vm","procid":"13275"}}`},
	{"rsyslog 8.2302, RSYSLOG_ForwardFormat", "<35>2026-05-28T12:40:00.123456+00:00 box shop[77]: first",
		`{"time":"2026-05-28T12:40:00.123456Z","level":"ERROR","msg":"first","service":"shop","attrs":{"facility":"auth","host":"box","procid":"77"}}`},
	{"rsyslog 8.2302, a tag without a colon", "<35>2026-05-28T12:40:00.123456Z box shop[77] first",
		`{"time":"2026-05-28T12:40:00.123456Z","level":"ERROR","msg":"first","service":"shop","attrs":{"facility":"auth","host":"box","procid":"77"}}`},
	{"Python SysLogHandler", "<14>syslog hello\x00",
		`{"time":"2026-01-01T00:30:00.000005Z","level":"INFO","msg":"syslog hello","attrs":{"facility":"user","peer":"192.0.2.7"}}`},
	{"sshd by pam, of Linux.log", "<38>Jun 14 15:16:01 combo sshd(pam_unix)[19939]: authentication failure; logname= uid=0 euid=0 tty=NODEVssh ruser= rhost=218.188.2.4 ",
		`{"time":"2025-06-14T15:16:01Z","level":"INFO","msg":"authentication failure; logname= uid=0 euid=0 tty=NODEVssh ruser= rhost=218.188.2.4 ","service":"sshd(pam_unix)","attrs":{"facility":"auth","host":"combo","procid":"19939"}}`},
	{"kernel, of Linux.log", "<4>Jun  9 06:06:20 combo kernel: BIOS-provided physical RAM map:",
		`{"time":"2025-06-09T06:06:20Z","level":"WARN","msg":"BIOS-provided physical RAM map:","service":"kernel","attrs":{"facility":"kern","host":"combo"}}`},
	{"log4j2 Syslog appender", "<134>1 2026-01-01T00:29:59.999Z host app 23790 - - msg",
		`{"time":"2026-01-01T00:29:59.999Z","level":"INFO","msg":"msg","service":"app","attrs":{"facility":"local0","host":"host","procid":"23790"}}`},
	{"Cisco IOS", "<189>29: *Mar  1 18:46:11.040: %SYS-5-CONFIG_I: Configured from console by vty2 (10.34.195.36)",
		`{"time":"2026-01-01T00:30:00.000005Z","level":"INFO+2","msg":"29: *Mar  1 18:46:11.040: %SYS-5-CONFIG_I: Configured from console by vty2 (10.34.195.36)","attrs":{"facility":"local7","peer":"192.0.2.7"}}`},
	{"Cisco ASA", "<166>Jan 01 2026 00:29:00: %ASA-6-302013: Built outbound TCP connection 447235 for outside:192.0.2.8/80",
		`{"time":"2026-01-01T00:29:00Z","level":"INFO","msg":"%ASA-6-302013: Built outbound TCP connection 447235 for outside:192.0.2.8/80","attrs":{"facility":"local4","peer":"192.0.2.7"}}`},
	{"nginx, syslog:server=", `<190>Jan  1 00:29:00 web nginx: 192.0.2.50 - - [01/Jan/2026:00:29:00 +0000] "GET / HTTP/1.1" 200 612 "-" "curl/8.0"`,
		`{"time":"2026-01-01T00:29:00Z","level":"INFO","msg":"192.0.2.50 - - [01/Jan/2026:00:29:00 +0000] \"GET / HTTP/1.1\" 200 612 \"-\" \"curl/8.0\"","service":"nginx","attrs":{"facility":"local7","host":"web"}}`},
	{"HAProxy", "<134>Jan  1 00:29:00 haproxy[14389]: 10.0.1.2:33317 [01/Jan/2026:00:28:59.655] http-in static/srv1 10/0/30/69/109 200 2750 - - ---- 1/1/1/1/0 0/0 \"GET /index.html HTTP/1.1\"",
		`{"time":"2026-01-01T00:29:00Z","level":"INFO","msg":"10.0.1.2:33317 [01/Jan/2026:00:28:59.655] http-in static/srv1 10/0/30/69/109 200 2750 - - ---- 1/1/1/1/0 0/0 \"GET /index.html HTTP/1.1\"","service":"haproxy","attrs":{"facility":"local0","procid":"14389","peer":"192.0.2.7"}}`},
	{"Docker's syslog driver", "<30>Jan  1 00:29:00 docker/fervent_mayer[1089]: hello",
		`{"time":"2026-01-01T00:29:00Z","level":"INFO","msg":"hello","service":"docker/fervent_mayer","attrs":{"facility":"daemon","procid":"1089","peer":"192.0.2.7"}}`},
	{"Docker's syslog driver, rfc5424micro", "<30>1 2026-01-01T00:29:00.123456Z box fervent_mayer 1089 fervent_mayer - hello",
		`{"time":"2026-01-01T00:29:00.123456Z","level":"INFO","msg":"hello","service":"fervent_mayer","attrs":{"facility":"daemon","host":"box","procid":"1089","msgid":"fervent_mayer"}}`},
	{"Juniper, structured", `<165>1 2026-01-01T00:29:00.133Z re0 mgd 3046 UI_DBASE_LOGOUT_EVENT [junos@2636.1.1.1.2.18 username="regress"] User 'regress' exiting configuration mode`,
		`{"time":"2026-01-01T00:29:00.133Z","level":"INFO+2","msg":"User 'regress' exiting configuration mode","service":"mgd","attrs":{"facility":"local4","host":"re0","procid":"3046","msgid":"UI_DBASE_LOGOUT_EVENT","junos@2636.1.1.1.2.18":{"username":"regress"}}}`},
	{"FortiGate", `<189>date=2026-01-01 time=00:29:00 devname="FGT" devid="FG100" logid="0000000013" type="traffic" level="notice"`,
		`{"time":"2026-01-01T00:30:00.000005Z","level":"INFO+2","msg":"date=2026-01-01 time=00:29:00 devname=\"FGT\" devid=\"FG100\" logid=\"0000000013\" type=\"traffic\" level=\"notice\"","attrs":{"facility":"local7","peer":"192.0.2.7"}}`},
}

// Each message becomes its line, in a datagram and on a stream, counted or ended by LF.
func TestVectors(t *testing.T) {
	p := Protocol{Zone: time.UTC}
	for _, v := range vectors {
		chunk := newChunk(v.message)
		p.DecodePacket(chunk)
		if got := shortTime(string(chunk.Batch.Lines)); got != v.want+"\n" || chunk.Batch.Records != 1 || chunk.Batch.RejectedTotal != 0 {
			t.Errorf("%s: %d records\ngot  %swant %s", v.from, chunk.Batch.Records, got, v.want)
		}
		message := strings.TrimRight(v.message, "\x00")
		for _, frame := range []string{message + "\n", fmt.Sprintf("%d %s", len(message), message), message + "\x00"} {
			if frame[0] != '<' && frame[0] != 'U' && message[0] != '<' {
				continue // a count in front of what is no priority is text
			}
			chunk := newChunk(frame)
			n, err := p.Open().Decode(chunk)
			if got := shortTime(string(chunk.Batch.Lines)); n != len(frame) || err != nil || got != v.want+"\n" {
				t.Errorf("%s as %q: %d of %d bytes, %v\ngot  %swant %s", v.from, frame[:10], n, len(frame), err, got, v.want)
			}
		}
	}
}
