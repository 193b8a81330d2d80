import { Compile } from 'typebox/schema'

interface Operation {
  responses: Record<string, { content?: Record<string, { schema: object }> }>
}

export interface OpenApi {
  openapi: string
  paths: Record<string, Record<string, Operation>>
  webhooks: Record<string, { post: { requestBody: { content: Record<string, { schema: object; example: unknown }> } } }>
  components: Record<string, Record<string, object>>
}

interface Checker {
  Check(value: unknown): boolean
  Errors(value: unknown): unknown
}

/** Refusals of HTTP itself, which every address may give and no operation lists. */
const ANYWHERE = new Set(['not_found', 'method_not_allowed', 'invalid_request', 'request_timeout', 'headers_too_large'])

/** The OpenAPI document, as something to hold answers against. */
export class ApiDocument {
  readonly document: OpenApi
  readonly #checkers = new Map<object, Checker>()

  constructor(document: unknown) {
    // As clients receive it: without the fields that JSON drops.
    this.document = JSON.parse(JSON.stringify(document))
  }

  /** @throws Error if an answer of a documented operation is not as the document has it */
  check(method: string, path: string, status: number, body: unknown): void {
    const code = (body as { error?: { code?: string } } | undefined)?.error?.code
    if (code !== undefined && ANYWHERE.has(code)) return
    const operation = this.find(method, path)
    if (!operation) return
    const response = operation.responses[String(status)]
    if (!response) throw new Error(`${method} ${path} answered ${status}, which is not in the document.`)
    const schema = response.content?.['application/json']?.schema
    if (schema && body !== undefined) this.checkSchema(`${method} ${path} ${status}`, schema, body)
  }

  /** @throws Error */
  checkSchema(subject: string, schema: object, value: unknown): void {
    const checker = this.#checkers.get(schema) ?? this.#compile(schema)
    this.#checkers.set(schema, checker)
    if (checker.Check(value)) return
    const errors = JSON.stringify(checker.Errors(value))
    throw new Error(`${subject} is not as the document has it: ${errors}\n${JSON.stringify(value)}`)
  }

  /** The most literal operation that `path` matches. */
  find(method: string, path: string): Operation | undefined {
    const given = path.split(/[?#]/, 1)[0]!.split('/')
    const patterns = Object.keys(this.document.paths)
      .filter(pattern => {
        const wanted = pattern.split('/')
        return wanted.length === given.length && wanted.every((part, i) => part.startsWith('{') || part === given[i])
      })
      .sort((a, b) => a.split('{').length - b.split('{').length)
    return patterns[0] === undefined ? undefined : this.document.paths[patterns[0]]?.[method.toLowerCase()]
  }

  #compile(schema: object): Checker {
    const local = JSON.parse(
      JSON.stringify({ $defs: this.document.components['schemas'], ...schema }).replaceAll(
        '#/components/schemas/',
        '#/$defs/',
      ),
    )
    return Compile(local) as Checker
  }
}
