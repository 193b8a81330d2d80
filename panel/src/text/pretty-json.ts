const TOKEN = /"(?:[^"\\]|\\.)*"|[{}[\],:]|[^\s"{}[\],:]+/g

/**
 * The same JSON with line breaks and indentation. Strings and numbers keep their exact text: parsing would round large numbers.
 * @returns null if the text is not a JSON object or array
 */
export function prettyJson(text: string): string | null {
  if (!/^\s*[{[]/.test(text)) return null
  try {
    JSON.parse(text)
  } catch {
    return null
  }
  let out = ''
  let depth = 0
  let before = ''
  const line = () => `\n${'  '.repeat(depth)}`
  for (const [token] of text.matchAll(TOKEN)) {
    const isEmpty = (before === '{' && token === '}') || (before === '[' && token === ']')
    if (token === '}' || token === ']') {
      depth -= 1
      out += isEmpty ? token : line() + token
    } else {
      if (before === '{' || before === '[') out += line()
      out += token
      if (token === '{' || token === '[') depth += 1
      if (token === ',') out += line()
      if (token === ':') out += ' '
    }
    before = token
  }
  return out
}
