package normalize

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/rollway/rollway/internal/testkit"
)

const textLine = "2026-05-28 12:40:00,123 [main] ERROR com.example.Shop - charge failed"

// TestText takes from a message what the client has not said, and nothing else.
func TestText(t *testing.T) {
	berlin, err := time.LoadLocation("Europe/Berlin")
	testkit.OK(t, err)
	const receipt, then = "2026-11-21T04:00:00.000000005Z", "2026-05-28T12:40:00.123000000Z"
	line := func(at, level, rest string) string {
		return fmt.Sprintf(`{"time":"%s","level":"%s",%s}`, at, level, rest)
	}
	for _, c := range []struct {
		text     Text
		in, want string
	}{
		{Text{}, `{"msg":"` + textLine + `"}`, line(then, "ERROR", `"msg":"`+textLine+`"`)},
		{Text{}, `{"log":"` + textLine + `\n","stream":"stderr"}`, line(then, "ERROR", `"msg":"`+textLine+`\n","attrs":{"stream":"stderr"}`)},
		{Text{}, `{"msg":"` + textLine + `","level":"info"}`, line(then, "INFO", `"msg":"`+textLine+`"`)},
		{Text{}, `{"msg":"` + textLine + `","level":"loud"}`, line(then, "ERROR", `"msg":"`+textLine+`","attrs":{"level":"loud"}`)},
		{Text{}, `{"msg":"` + textLine + `","time":1779972007}`, line("2026-05-28T12:40:07.000000000Z", "ERROR", `"msg":"`+textLine+`"`)},
		{Text{}, `{"msg":"` + textLine + `","time":1779972007,"level":"debug"}`, line("2026-05-28T12:40:07.000000000Z", "DEBUG", `"msg":"`+textLine+`"`)},
		{Text{}, `{"short_message":"` + textLine + `","version":"1.1"}`, line(then, "ERROR", `"msg":"`+textLine+`","attrs":{"version":"1.1"}`)},
		{Text{}, `{"msg":"` + textLine + `","severity_number":9}`, line(then, "INFO", `"msg":"`+textLine+`"`)},
		{Text{Off: true}, `{"msg":"` + textLine + `"}`, line(receipt, "INFO", `"msg":"`+textLine+`"`)},
		{Text{Zone: berlin}, `{"msg":"` + textLine + `"}`, line("2026-05-28T10:40:00.123000000Z", "ERROR", `"msg":"`+textLine+`"`)},
		{Text{}, `{"msg":"2026-05-28T12:40:00.123Z\terror\tcharge failed"}`, line(then, "ERROR", `"msg":"2026-05-28T12:40:00.123Z\terror\tcharge failed"`)},
		{Text{}, `{"msg":"\u005b2026-05-28 12:40:00.123] [\u0045RROR] x"}`, line(then, "ERROR", `"msg":"\u005b2026-05-28 12:40:00.123] [\u0045RROR] x"`)},
		{Text{}, `{"msg":"charge failed"}`, line(receipt, "INFO", `"msg":"charge failed"`)},
		{Text{}, `{"msg":20260528}`, line(receipt, "INFO", `"msg":"20260528"`)},
		{Text{}, `{"msg":"192.0.2.1 - frank [28/May/2026:12:40:00 +0000] \"GET /a?b=c HTTP/1.1\" 503 12 \"-\" \"curl\"","x":1}`,
			line("2026-05-28T12:40:00.000000000Z", "ERROR", `"msg":"192.0.2.1 - frank [28/May/2026:12:40:00 +0000] \"GET /a?b=c HTTP/1.1\" 503 12 \"-\" \"curl\"","attrs":{"x":1,"remote":"192.0.2.1","user":"frank","method":"GET","path":"/a","query":"b=c","user_agent":"curl","status":503,"bytes":12}`)},
		{Text{}, `{"msg":"192.0.2.1 - - [28/May/2026:12:40:00 +0000] \"GET / HTTP/1.1\" 200 007"}`,
			line("2026-05-28T12:40:00.000000000Z", "INFO", `"msg":"192.0.2.1 - - [28/May/2026:12:40:00 +0000] \"GET / HTTP/1.1\" 200 007","attrs":{"remote":"192.0.2.1","method":"GET","path":"/","status":200,"bytes":7}`)},
		{Text{}, `{"msg":"192.0.2.1 - - [28/May/2026:12:40:00 +0000] \"GET / HTTP/1.1\" 404 0","status":404,"level":""}`,
			line("2026-05-28T12:40:00.000000000Z", "WARN", `"msg":"192.0.2.1 - - [28/May/2026:12:40:00 +0000] \"GET / HTTP/1.1\" 404 0","attrs":{"status":404,"level":""}`)},
		{Text{}, `{"msg":"192.0.2.1 - - [28/May/2026:12:40:00 +0000] \"GET / HTTP/1.1\" 200 0","path":"/x"}`,
			line("2026-05-28T12:40:00.000000000Z", "INFO", `"msg":"192.0.2.1 - - [28/May/2026:12:40:00 +0000] \"GET / HTTP/1.1\" 200 0","attrs":{"path":"/x","remote":"192.0.2.1","method":"GET","path_2":"/","status":200,"bytes":0}`)},
	} {
		n, b := New(Limits{Text: c.text}), new(Batch)
		if err := n.Body(b, []byte(c.in), received); err != nil {
			t.Fatal(err)
		}
		if got := strings.TrimSuffix(string(b.Lines), "\n"); got != c.want {
			t.Errorf("%s\n got %s\nwant %s", c.in, got, c.want)
		}
	}
}

// TestTextOfForms gives each of textlog's lines as JSON and to a Builder: both become the
// same, and the message stays as it is.
func TestTextOfForms(t *testing.T) {
	for _, text := range formLines(t) {
		n, b := New(Limits{}), new(Batch)
		event, _ := json.Marshal(map[string]string{"message": text})
		if err := n.Body(b, event, received); err != nil {
			t.Fatal(err)
		}
		read := string(b.Lines)
		b.Reset()
		build := n.Build(b, received)
		build.Begin()
		build.Slot(Message)
		build.String([]byte(text))
		build.End()
		build.Done()
		var got, built map[string]any
		form, _ := formOf([]byte(text), false)
		if err := json.Unmarshal([]byte(read), &got); err != nil || got["msg"] != text && form == noForm {
			t.Errorf("%q became %s", text, read)
		}
		json.Unmarshal(b.Lines, &built) // written as read, it differs in escapes
		if fmt.Sprint(got) != fmt.Sprint(built) {
			t.Errorf("%q became %s and %s", text, read, b.Lines)
		}
	}
}

func formLines(t testing.TB) (list []string) {
	file, err := os.ReadFile("../textlog/testdata/forms.txt")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(file)) {
		if line[0] != '#' && len(line) > 40 {
			list = append(list, strings.NewReplacer(`\t`, "\t", `\n`, "\n", `\e`, "\x1b").Replace(line[40:]))
		}
	}
	return list
}

// TestTextWithinLimits has no room for the attributes of an access log: the event stays.
func TestTextWithinLimits(t *testing.T) {
	const event = `{"msg":"192.0.2.1 - - [28/May/2026:12:40:00 +0000] \"GET / HTTP/1.1\" 500 0","a":1,"b":2}`
	for _, limits := range []Limits{{MaxFields: 5}, {MaxEventBytes: 256}, {MaxKeyBytes: 16, MaxValueBytes: 80}} {
		n, b := New(limits), new(Batch)
		if n.Body(b, []byte(event), received); b.Records != 1 || !strings.Contains(string(b.Lines), `"level":"ERROR"`) {
			t.Errorf("%+v: %s %+v", limits, b.Lines, b.Rejected)
		}
	}
}

func TestTextWithoutAllocation(t *testing.T) {
	var body []byte
	for _, text := range formLines(t) {
		event, _ := json.Marshal(map[string]string{"message": text + strings.Repeat(" and so on", 20)})
		body = append(append(body, event...), '\n')
	}
	n, b := New(Limits{}), new(Batch)
	if got := testkit.Mallocs(func() {
		b.Reset()
		if err := n.Body(b, body, received); err != nil || b.RejectedTotal > 0 {
			t.Fatal(err, b.Rejected)
		}
	}); got != 0 {
		t.Errorf("%d allocations for %d events", got, b.Records)
	}
}
