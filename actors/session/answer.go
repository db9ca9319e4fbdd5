package session

import (
	"cmp"
	"strconv"

	"github.com/refold/refold/codec"
)

func observedFault(b *ToolCallsObserved) *refusal {
	switch {
	case len(b.Calls) == 0:
		return refuse(RejectInvalidData, "calls: is empty; a turn without calls is a GenerationSettled")
	case len(b.Calls) > CallsSeenMax:
		return refuse(RejectLimitExceeded, "calls: at most "+strconv.Itoa(CallsSeenMax))
	case len(b.Model) > NameBytesMax || len(b.FinishReason) > NameBytesMax:
		return refuse(RejectInvalidData, "model and finish_reason: at most "+strconv.Itoa(NameBytesMax)+" bytes")
	}
	for i := range b.Calls {
		if fault := b.Calls[i].fault(); fault != "" {
			return refuse(RejectInvalidData, "calls["+strconv.Itoa(i)+"]."+fault)
		}
	}
	return cmp.Or(opaqueFault(b.Opaque), contentFault("text", b.Text, true), usageFault(b.Usage))
}

// fault checks a call as the model made it.
func (c *ObservedCall) fault() string {
	switch {
	case len(c.ProviderCallID) > ByBytesMax:
		return "provider_call_id: at most " + strconv.Itoa(ByBytesMax) + " bytes"
	case c.ArgumentsBlob != nil && c.Arguments != "":
		return "arguments: stand beside arguments_blob: give one of the two"
	case c.ArgumentsBlob == nil && c.Size != 0:
		return "size: belongs to an arguments_blob"
	case c.Size < 0 || c.Size > NumberMax:
		return "size: " + numberRange
	}
	return ""
}

func opaqueFault(opaque codec.Raw) *refusal {
	if codec.HasBinary(opaque) {
		return refuse(RejectInvalidData, "opaque: "+noBinary)
	}
	return nil
}

// noBinary is the detail for binary in a value. JSON has no binary, so a reader
// that prints the value would show another one.
const noBinary = "holds binary, which JSON does not have: send it as text"

func generationFault(b *GenerationSettled) *refusal {
	if bad := statusFault(b.Status, b.Error); bad != nil {
		return bad
	}
	if len(b.Model) > NameBytesMax || len(b.FinishReason) > NameBytesMax {
		return refuse(RejectInvalidData, "model and finish_reason: at most "+strconv.Itoa(NameBytesMax)+" bytes")
	}
	return cmp.Or(faultFault(b.Error), opaqueFault(b.Opaque), contentFault("text", b.Text, true), usageFault(b.Usage))
}

// statusFault checks the status of a settlement that is ok or failed: exactly the
// failed one has an error.
func statusFault(status string, f *Fault) *refusal {
	switch {
	case status != "ok" && status != "failed":
		return refuse(RejectInvalidData, "status: ok or failed, not "+quoted(status))
	case status == "ok" && f != nil:
		return refuse(RejectInvalidData, "error: belongs to status failed")
	case status == "failed" && f == nil:
		return refuse(RejectInvalidData, "error: is missing, the status is failed")
	}
	return nil
}

func faultFault(f *Fault) *refusal {
	if f != nil && (f.Code == "" || len(f.Code) > CodeBytesMax) {
		return refuse(RejectInvalidData, "error.code: 1 to "+strconv.Itoa(CodeBytesMax)+" bytes")
	}
	return nil
}

func usageFault(u *Usage) *refusal {
	if u == nil {
		return nil
	}
	for _, n := range []int64{u.CacheWriteTokens, u.CachedTokens, u.InputTokens, u.OutputTokens, u.ReasoningTokens} {
		if n < 0 || n > TokensMax {
			return refuse(RejectInvalidData, "usage: a count is 0 to "+strconv.FormatInt(TokensMax, 10))
		}
	}
	return nil
}

func (c *Content) isEmpty() bool { return c.Text == "" && c.Blob == nil && len(c.Parts) == 0 }
