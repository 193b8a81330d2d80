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

/** Refusals of the HTTP layer. Any path may return them, and no operation lists them. */
const ANYWHERE = new Set(['not_found', 'method_not_allowed', 'invalid_request', 'request_timeout', 'headers_too_large'])

/** Checks answers against the OpenAPI document. */
export class ApiDocument {
  readonly document: OpenApi
  readonly #checkers = new Map<object, Checker>()

  constructor(document: unknown) {
    // As clients receive it: without the fields that JSON drops.
    this.document = JSON.parse(JSON.stringify(document))
  }

  /** @throws Error if an answer of a documented operation does not match the document */
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
    throw new Error(`${subject} does not match the document: ${errors}\n${JSON.stringify(value)}`)
  }

  /** The operation that matches `path` with the fewest parameters. */
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
