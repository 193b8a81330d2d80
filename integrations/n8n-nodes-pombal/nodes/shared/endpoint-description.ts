const MAX_CHARACTERS = 100

/** The description of a workflow's endpoint. Pombal refuses control characters and half an emoji. */
export function describeEndpoint(workflowName = ''): string {
  const text = `n8n: ${workflowName.replace(/\p{Cc}/gu, ' ')}`
  return Array.from(text).slice(0, MAX_CHARACTERS).join('').trim()
}
