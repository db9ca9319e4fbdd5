package openai

// responseTokensMin is the least max_output_tokens: the API refuses less.
const responseTokensMin = 16
