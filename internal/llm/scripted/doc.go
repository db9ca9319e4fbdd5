// Package scripted is a model that answers as a YAML file says. It fails with
// script_mismatch if a request differs from what the file expects.
//
// # The file
//
// Either turns, in order, for one conversation:
//
//	model: demo                     # the model's name in answers; default: scripted
//	turns:
//	  - shown:                      # conditions on the request; all must hold
//	      last: user                # role of the last message: user or tool
//	      text: [repair, slot.go]   # parts of the last message
//	      lacks: please             # not a part of the last message
//	      matches: '(?i)repair (.)' # a regular expression for the last message
//	      asked: 'repair'           # one for the latest message of the user
//	      system: careful           # parts of the system text
//	      tools: {include: [open_session], exclude: [shell]}
//	    say: I open a place to work.
//	    calls:
//	      - tool: open_session
//	        arguments: {workdir: .} # or a text, taken as it is; default: {}
//	        id: call_7              # the provider's id; default: call_<turn>_<position>
//	    usage: {input_tokens: 120, output_tokens: 12, cached_tokens: 0, cache_write_tokens: 0, reasoning_tokens: 0}
//	  - shown:
//	      results:                  # all results of the latest calls, in order
//	        - {tool: open_session, error: false, text: ready, lacks: no, matches: .}
//	    say: It is open.
//	    finish: length              # the finish reason; default: stop, or tool_calls
//	    wait: 2s                    # before the answer; at most a minute
//	  - fail: {code: overloaded, detail: try later, retryable: true} # instead of an answer; only as the last turn
//
// or rules, of which the first match applies:
//
//	rules:
//	  - shown: {asked: '^read (\S+)', last: user}
//	    calls: [{tool: read_file, arguments: {path: '${1}'}}]
//	  - say: You said ${user}
//
// A text in say and in arguments may contain ${text}, the last message; ${user},
// the latest message of the user; ${result}, the latest result; ${1} to ${9},
// groups of matches, or of asked if there is no matches. $${ stands for ${.
//
// Each request for a summary is answered with the text of the key summary, or if there is
// none with "The conversation had N messages."
//
// # Laws
//
//   - Nothing is kept between two generations: the number of the model's
//     messages in the request determines the turn.
//   - With turns, every message of the model in the request must be the
//     script's. With rules, earlier messages of the model are not checked.
//   - A file with a mistake is refused when it is read; the error names file and
//     line, and the key or the lines around it.
//
// # Built-in scripts
//
// [Echo] repeats any text and calls tools on a few words; [Demo] repairs the
// small program that comes with it.
//
// # Limits
//
// A file has at most turnsMax turns or rules, and is within the limits of
// package yamlfile.
package scripted
