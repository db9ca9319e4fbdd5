package openai

// responseTokensMin is the least max_output_tokens: the API refuses less.
const responseTokensMin = 16

// refusalsMax is the most models of a server whose refused members are remembered.
const refusalsMax = 1024
