package gemini

// answerBytesMax is how much words, thoughts and arguments of one answer may be.
const answerBytesMax = 8 << 20
