/** A call of the API. The token is a variable, so a copied command contains no secret. */
export interface ApiCall {
  method: 'GET' | 'POST'
  /** Below the address of the panel. */
  path: string
  body?: object
}

export function curlOfCall({ method, path, body }: ApiCall, origin: string): string {
  const lines = [
    `curl ${method === 'GET' ? '' : `-X ${method} `}${quoted(origin + path)}`,
    `-H "Authorization: Bearer $POMBAL_TOKEN"`,
    ...(body ? [`-H 'Content-Type: application/json'`, `--data-raw ${quoted(JSON.stringify(body))}`] : []),
  ]
  return lines.join(' \\\n  ')
}

interface Posted {
  url: string
  headers: Readonly<Record<string, string>>
  body: string
}

/** The request of a webhook. Its signatures are not secret: they are valid for this body only. */
export function curlOfAttempt({ url, headers, body }: Posted): string {
  const lines = [
    `curl -X POST ${quoted(url)}`,
    ...Object.entries(headers).map(([name, value]) => `-H ${quoted(`${name}: ${value}`)}`),
    `--data-raw ${quoted(body)}`,
  ]
  return lines.join(' \\\n  ')
}

/** One word of a POSIX shell, whatever the text contains. */
function quoted(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`
}
