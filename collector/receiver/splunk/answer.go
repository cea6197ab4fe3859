package splunk

import (
	"cmp"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"

	"github.com/rollway/rollway/collector/receiver"
	"github.com/rollway/rollway/internal/jsonline"
)

// Codes of answers.
const (
	success       = 0
	tokenRequired = 2
	tokenInvalid  = 4
	noData        = 5
	invalidData   = 6
	internalError = 8
	busy          = 9
	eventMissing  = 12
	eventBlank    = 13
	fieldsBroken  = 15
)

var codes = map[byte]struct {
	status int
	text   string
}{
	success:       {http.StatusOK, "Success"},
	tokenRequired: {http.StatusUnauthorized, "Token is required"},
	tokenInvalid:  {http.StatusForbidden, "Invalid token"},
	noData:        {http.StatusBadRequest, "No data"},
	invalidData:   {http.StatusBadRequest, "Invalid data format"},
	internalError: {http.StatusInternalServerError, "Internal server error"},
	busy:          {http.StatusServiceUnavailable, "Server is busy"},
	eventMissing:  {http.StatusBadRequest, "Event field is required"},
	eventBlank:    {http.StatusBadRequest, "Event field cannot be blank"},
	fieldsBroken:  {http.StatusBadRequest, "Error in handling indexed fields"},
}

// answerer answers both protocols.
type answerer struct{}

// Answer tells of the first event that was left out, or why nothing was taken.
func (answerer) Answer(a *receiver.Answer) {
	// 400 with a note: the request was read, but all its events are left out.
	if len(a.Note) == 0 || a.Code != http.StatusOK && a.Code != http.StatusBadRequest {
		if a.Code == http.StatusTooManyRequests { // which the protocol does not know
			a.Code = http.StatusServiceUnavailable
		}
		a.Body = appendFault(a.Body, a.Code, a.Text)
		return
	}
	code := a.Note[0]
	number, _ := binary.Uvarint(a.Note[2:])
	switch {
	case code == success:
		a.Code = http.StatusOK
	case code == busy && number == 0:
		a.Code = http.StatusServiceUnavailable
	default:
		if code == busy { // some are stored: to send all again would store them twice
			code = invalidData
		}
		a.Code = codes[code].status
	}
	a.Body = appendText(a.Body, codes[code].text, code)
	if code != success {
		a.Body = append(a.Body, `,"invalid-event-number":`...)
		a.Body = strconv.AppendUint(a.Body, number, 10)
		a.Body = append(a.Body, `,"stored":`...)
		a.Body = strconv.AppendInt(a.Body, int64(a.Stored), 10)
	} else if a.Note[1] == 1 {
		a.Body = append(a.Body, `,"ackId":`...)
		a.Body = strconv.AppendUint(a.Body, a.First, 10)
	}
	a.Body = append(a.Body, "}\n"...)
}

// faults are the codes for statuses of failed requests; others have invalidData.
var faults = map[int]byte{
	http.StatusUnauthorized:        tokenRequired,
	http.StatusForbidden:           tokenInvalid,
	http.StatusServiceUnavailable:  busy,
	http.StatusInternalServerError: internalError,
}

// appendFault appends the answer to a request when nothing was taken.
func appendFault(dst []byte, status int, text string) []byte {
	code := cmp.Or(faults[status], invalidData)
	if text == codes[noData].text {
		code = noData
	}
	dst = appendText(dst, codes[code].text, code)
	if text != codes[code].text {
		dst = append(dst, `,"detail":`...)
		dst = jsonline.AppendString(dst, text)
	}
	return append(dst, "}\n"...)
}

func appendText(dst []byte, text string, code byte) []byte {
	dst = append(dst, `{"text":"`...)
	dst = append(dst, text...)
	dst = append(dst, `","code":`...)
	return strconv.AppendUint(dst, uint64(code), 10)
}

// maxAcks is how many bytes of a question for acknowledgements are read.
const maxAcks = 1 << 20

// Acks answers which ackIds are stored: all that were ever given.
var Acks http.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
	var asked struct {
		Acks []uint64 `json:"acks"`
	}
	if err := json.NewDecoder(io.LimitReader(r.Body, maxAcks)).Decode(&asked); err != nil {
		write(w, http.StatusBadRequest, appendFault(nil, http.StatusBadRequest, "expected {\"acks\":[…]}: "+err.Error()))
		return
	}
	answer := []byte(`{"acks":{`)
	for i, id := range asked.Acks {
		if i > 0 {
			answer = append(answer, ',')
		}
		answer = fmt.Appendf(answer, `"%d":true`, id)
	}
	write(w, http.StatusOK, append(answer, "}}"...))
})

func write(w http.ResponseWriter, status int, body []byte) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(status)
	w.Write(body) // a client that is gone needs no answer
}
