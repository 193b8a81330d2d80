import { createRequire } from 'node:module'
import { join } from 'node:path'

/** The contexts in which n8n calls a node, with HTTP requests as n8n makes them. */

export const PACKAGE = join(import.meta.dirname, '../../integrations/n8n-nodes-pombal')
const require = createRequire(join(PACKAGE, 'package.json'))

type Json = Record<string, unknown>

export interface Item {
  json: Json
  binary?: Record<string, { bytes: Buffer; mimeType: string; fileName?: string }>
}

export interface Run {
  items: Item[]
  /** Ends the run. */
  end(error?: Error): void
}

interface Request {
  method: string
  url: string
  qs?: Json
  headers?: Record<string, string>
  body?: unknown
  json?: boolean
  encoding?: string
  timeout?: number
  abortSignal?: AbortSignal
  returnFullResponse?: boolean
}

type Method = (this: object) => Promise<never>

/** The methods of the three nodes. */
interface Node {
  execute: Method
  trigger: Method
  webhook: Method
  webhookMethods: { default: { create: Method; checkExists: Method; delete: Method } }
}

function loadNode(name: string): Node {
  return new (require(`./dist/nodes/${name}/${name}.node.js`)[name])()
}

/** What all contexts have. @param parameters functions get the number of the item */
function shared(credentials: { baseUrl: string; token: string }, parameters: Json, staticData: Json) {
  const node = { id: 'node-1', name: 'Pombal', type: 'pombal', typeVersion: 1, position: [0, 0], parameters }
  return {
    getCredentials: async () => credentials,
    getNode: () => node,
    getWorkflow: () => ({ id: 'workflow-1', name: 'Orders', active: true }),
    getWorkflowStaticData: () => staticData,
    logger: { debug() {}, info() {}, warn() {}, error() {} },
    helpers: {
      // n8n wraps what its HTTP client throws.
      httpRequestWithAuthentication: (_name: string, request: Request) =>
        send(request, credentials.token).catch(error => {
          const { NodeApiError } = require('n8n-workflow')
          throw new NodeApiError(node, error)
        }),
      createDeferredPromise: () => Promise.withResolvers<object>(),
    },
  }
}

async function send(request: Request, token: string): Promise<unknown> {
  const { method, url, qs = {}, headers = {}, body, json = false, timeout, abortSignal } = request
  const texts = Object.entries(qs).map(([name, value]): [string, string] => [name, String(value)])
  const query = new URLSearchParams(texts).toString()
  const response = await fetch(query === '' ? url : `${url}?${query}`, {
    method,
    headers: {
      authorization: `Bearer ${token}`,
      ...(json && body ? { 'content-type': 'application/json' } : {}),
      ...headers,
    },
    ...(body !== undefined && { body: json ? JSON.stringify(body) : (body as Buffer<ArrayBuffer>) }),
    signal: AbortSignal.any([AbortSignal.timeout(timeout ?? 300_000), ...(abortSignal ? [abortSignal] : [])]),
  })
  const bytes = Buffer.from(await response.arrayBuffer())
  const isJson = response.headers.get('content-type')?.startsWith('application/json') ?? false
  const content = request.encoding === 'arraybuffer' ? bytes : isJson ? JSON.parse(bytes.toString()) : bytes.toString()
  if (!response.ok) {
    const { status } = response
    const { AxiosError } = require('axios')
    const answer = { status, data: content, headers: Object.fromEntries(response.headers) }
    throw new AxiosError(`Request failed with status code ${status}`, 'ERR_BAD_REQUEST', undefined, undefined, answer)
  }
  return request.returnFullResponse
    ? { body: content, headers: Object.fromEntries(response.headers), statusCode: response.status }
    : content
}

export interface Result {
  json: Json
  binary?: Record<string, { bytes: Buffer; fileName: string; mimeType: string }>
}

/** Each execution has an ID of its own unless a test names it. */
let runs = 0

interface ExecuteOptions {
  credentials: { baseUrl: string; token: string }
  parameters: Json
  items?: Item[]
  /** Null: the node runs without an execution, as a tool of an MCP Server Trigger. */
  executionId?: string | null
  /** The node is a tool of an agent. */
  isTool?: boolean
  round?: number
  continueOnFail?: boolean
  /** The time zone of the workflow. */
  timezone?: string
}

/** Converts a value as n8n does for `ensureType: 'string'`. */
function ensureString(name: string, value: unknown): string {
  if (value === null || value === undefined) throw new Error(`Parameter '${name}' must not be ${value}`)
  return typeof value === 'object' ? JSON.stringify(value) : String(value)
}

/** Runs an action node once. @returns its items, with their files as they were prepared */
export async function execute(options: ExecuteOptions): Promise<Result[]> {
  const {
    credentials,
    parameters,
    items = [{ json: {} }],
    executionId = `run-${++runs}`,
    isTool = false,
    round = 0,
    continueOnFail = false,
    timezone = 'UTC',
  } = options
  const base = shared(credentials, parameters, {})
  const fileOf = (item: number, property: string) => items[item]!.binary![property]!
  const context = {
    ...base,
    getInputData: () => items,
    getNodeParameter: (name: string, item: number, fallback?: unknown, options?: { ensureType?: string }) => {
      const given = parameters[name] ?? fallback
      const value = typeof given === 'function' ? given(item) : given
      return options?.ensureType === 'string' ? ensureString(name, value) : value
    },
    getTimezone: () => timezone,
    getExecutionId: () => executionId ?? undefined,
    evaluateExpression: () => round,
    isToolExecution: () => isTool,
    continueOnFail: () => continueOnFail,
    helpers: {
      ...base.helpers,
      assertBinaryData: fileOf,
      getBinaryDataBuffer: async (item: number, property: string) => fileOf(item, property).bytes,
      prepareBinaryData: async (bytes: Buffer, fileName: string | undefined, mimeType: string) => ({
        bytes,
        fileName,
        mimeType,
      }),
    },
  }
  const [results] = (await loadNode('Pombal').execute.call(context)) as Result[][]
  return results!
}

interface TriggerOptions {
  credentials: { baseUrl: string; token: string }
  parameters: Json
  staticData: Json
  mode?: 'trigger' | 'manual'
  onRun(run: Run): void
  onError?(error: Error): void
}

/** Activates the trigger of the feed. Each run stores a copy of the static data, as n8n does when it starts one. */
export async function activate(
  options: TriggerOptions,
): Promise<{ stored: Json[]; stop(): Promise<void>; runOnce(): Promise<void> }> {
  const { credentials, parameters, staticData, mode = 'trigger' } = options
  const stored: Json[] = []
  const context = {
    ...shared(credentials, parameters, staticData),
    getNodeParameter: (name: string, fallback?: unknown) => parameters[name] ?? fallback,
    getMode: () => mode,
    emit: (
      [items]: [Item[]],
      _response: unknown,
      ended?: { resolve(run: object): void; reject(error: Error): void },
    ) => {
      stored.push({ ...staticData })
      options.onRun({ items, end: error => (error ? ended?.reject(error) : ended?.resolve({})) })
    },
    emitError: (error: Error) => options.onError?.(error),
  }
  const trigger: { closeFunction(): Promise<void>; manualTriggerFunction(): Promise<void> } =
    await loadNode('PombalTrigger').trigger.call(context)
  stored.push({ ...staticData })
  return { stored, stop: () => trigger.closeFunction(), runOnce: () => trigger.manualTriggerFunction() }
}

interface WebhookOptions {
  credentials: { baseUrl: string; token: string }
  parameters: Json
  staticData: Json
  url: string
}

/** The trigger by webhook: `create`, `checkExists` and `delete` as n8n calls them, and `receive` for a request. */
export function webhookTrigger({ credentials, parameters, staticData, url }: WebhookOptions) {
  const node = loadNode('PombalWebhookTrigger')
  const base = shared(credentials, parameters, staticData)
  const hooks = {
    ...base,
    getNodeParameter: (name: string, fallback?: unknown) => parameters[name] ?? fallback,
    getNodeWebhookUrl: () => url,
  }
  const { create, checkExists, delete: remove } = node.webhookMethods.default
  return {
    create: (): Promise<boolean> => create.call(hooks),
    checkExists: (): Promise<boolean> => checkExists.call(hooks),
    remove: (): Promise<boolean> => remove.call(hooks),
    async receive(headers: Json, rawBody: Buffer): Promise<{ status: number; items: Item[] }> {
      let status = 200
      const response = {
        json: () => response,
        status(code: number) {
          status = code
          return response
        },
      }
      const result: { workflowData?: Item[][] } = await node.webhook.call({
        ...base,
        getHeaderData: () => headers,
        getRequestObject: () => ({ rawBody }),
        getResponseObject: () => response,
        getBodyData: () => JSON.parse(rawBody.toString()),
      })
      return { status, items: result.workflowData?.[0] ?? [] }
    },
  }
}
