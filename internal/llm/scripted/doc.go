// Package scripted is a model that answers as a YAML file says. It fails with
// script_mismatch when it is shown something else than the file expects.
//
// # The file
//
// Either turns, in order, for one conversation:
//
//	model: demo                     # which model it says it is; default: scripted
//	turns:
//	  - shown:                      # all that is given must hold of what is shown
//	      last: user                # whose message is the last one: user or tool
//	      text: [repair, slot.go]   # parts of the last message
//	      lacks: please             # no part of the last message
//	      matches: '(?i)repair (.)' # a regular expression for the last message
//	      asked: 'repair'           # one for the newest message of the user
//	      system: careful           # parts of the system text
//	      tools: {include: [open_session], exclude: [shell]}
//	    say: I open a place to work.
//	    calls:
//	      - tool: open_session
//	        arguments: {workdir: .} # or a text, taken as it is; default: {}
//	        id: call_7              # the provider's id; default: call_<turn>_<position>
//	    usage: {input_tokens: 120, output_tokens: 12, cached_tokens: 0, cache_write_tokens: 0, reasoning_tokens: 0}
//	  - shown:
//	      results:                  # all results of the calls before, in order
//	        - {tool: open_session, error: false, text: ready, lacks: no, matches: .}
//	    say: It is open.
//	    finish: length              # how it ends; default: stop, or tool_calls
//	    wait: 2s                    # before it says something; at most a minute
//	  - fail: {code: overloaded, detail: try later, retryable: true} # says nothing; only as the last turn
//
// or rules, the first that matches what is shown:
//
//	rules:
//	  - shown: {asked: '^read (\S+)', last: user}
//	    calls: [{tool: read_file, arguments: {path: '${1}'}}]
//	  - say: You said ${user}
//
// A text in say and in arguments may hold ${text}, the last message; ${user},
// the newest message of the user; ${result}, the last result; ${1} to ${9},
// groups of matches, or of asked if there is no matches. $${ stands for ${.
//
// # Laws
//
//   - Nothing is kept between two generations: the number of the model's
//     messages in the request decides the turn.
//   - Under turns, every message of the model that is shown must be what this
//     script said there. Under rules, earlier messages of the model are not
//     checked.
//   - A file with a mistake is refused when it is read; the error names file,
//     line and key.
//
// # Built in
//
// [Echo] answers any text and shows tools on a few words; [Demo] repairs the
// small program that comes with it.
//
// # Limits
//
// A file has at most turnsMax turns or rules, and what package yamlfile allows.
package scripted
