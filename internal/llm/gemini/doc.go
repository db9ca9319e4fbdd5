// Package gemini calls servers of the Gemini API's generateContent, with
// Google's own client library.
//
// # Path
//
// [Model.Generate] builds the request (request.go), sends it through an endpoint,
// which retries temporary failures, and reads the answer's chunks (answer.go).
//
// # Laws
//
//   - Every id that is sent is ours: the name of a call's effect. The server's
//     ids are data.
//   - Signatures of thoughts are sent back only to the server that made them,
//     each with the part that it came with. A signature that arrives alone, at
//     the end of a stream, belongs to the text before it.
//   - A response is an answer only if the server sent how it ended.
//
// # What is sent
//
// The members of params are members of the request, as the API names them:
// generationConfig, safetySettings and others; contents, model,
// systemInstruction, tools and toolConfig are refused. The run's remaining
// budget bounds maxOutputTokens. Turns of the user and of the model alternate:
// results of one turn are one message, and text right after them follows a
// short turn of the model. Numbers in arguments are 64-bit floating point, as
// in the API. In masked mode all tools are defined, and allowedFunctionNames
// lists those that may be called.
//
// # Limits
//
// Package endpoint has the limits of an answer.
package gemini
