import { createHash, randomUUID } from 'node:crypto'
import {
  type IDataObject,
  type IExecuteFunctions,
  type INodeExecutionData,
  type INodeType,
  type INodeTypeDescription,
  type JsonObject,
  NodeApiError,
  NodeConnectionTypes,
  NodeOperationError,
  tryToParseDateTime,
} from 'n8n-workflow'
import { CREDENTIALS, callForData, callPombal, refusalOf, statusOf } from '../shared/request'
import { properties } from './properties'

interface SendOptions {
  caption?: string
  filename?: string
  idempotencyKey?: string
  metadata?: string | IDataObject
  sendAt?: string | number
  as?: string
}

export class Pombal implements INodeType {
  description: INodeTypeDescription = {
    displayName: 'Pombal',
    name: 'pombal',
    icon: { light: 'file:pombal.svg', dark: 'file:pombal.dark.svg' },
    group: ['output'],
    version: 1,
    subtitle: '={{$parameter["operation"]}}',
    description: 'Send WhatsApp messages with Pombal, and read their state',
    defaults: { name: 'Pombal' },
    usableAsTool: true,
    inputs: [NodeConnectionTypes.Main],
    outputs: [NodeConnectionTypes.Main],
    credentials: [{ name: CREDENTIALS, required: true }],
    properties,
  }

  async execute(this: IExecuteFunctions): Promise<INodeExecutionData[][]> {
    const results: INodeExecutionData[] = []
    for (let item = 0; item < this.getInputData().length; item++) {
      try {
        for (const result of await run(this, item)) results.push({ ...result, pairedItem: { item } })
      } catch (error) {
        if (!this.continueOnFail()) {
          // `new NodeApiError` returns the error of a refused call unchanged.
          throw error instanceof NodeOperationError
            ? error
            : new NodeApiError(this.getNode(), error as JsonObject, { itemIndex: item })
        }
        results.push({ json: failureOf(error), pairedItem: { item } })
      }
    }
    return [results]
  }
}

/** The result of a failed item, if the node continues. n8n's own message would depend only on the status. */
function failureOf(error: unknown): IDataObject {
  const { code, message } = refusalOf(error)
  const status = statusOf(error)
  return {
    error: message ?? (error as Error).message,
    ...(code !== undefined && { code }),
    ...(status !== null && { status }),
  }
}

/** A parameter as text, trimmed. An expression may yield a number, such as a telephone number from a spreadsheet. */
function textOf(context: IExecuteFunctions, name: string, item: number): string {
  return rawTextOf(context, name, item).trim()
}

function rawTextOf(context: IExecuteFunctions, name: string, item: number): string {
  return String(context.getNodeParameter(name, item, undefined, { ensureType: 'string' }))
}

async function run(context: IExecuteFunctions, item: number): Promise<INodeExecutionData[]> {
  const of = (name: string) => textOf(context, name, item)
  const message = (action = '') => `/v1/messages/${encodeURIComponent(of('messageId'))}${action}`
  const command = (method: Call['method'], path: string, body?: IDataObject) =>
    once(context, item, { method, path, ...(body && { body }) })
  switch (of('operation')) {
    case 'sendText':
      return sendText(context, item, {})
    case 'reply':
      return sendText(context, item, { quote: of('messageId') })
    case 'sendFile':
      return sendFile(context, item)
    case 'react':
      return of('emoji') === ''
        ? command('DELETE', message('/reaction'))
        : command('PUT', message('/reaction'), { emoji: of('emoji') })
    case 'edit':
      return command('PATCH', message(), { text: rawTextOf(context, 'text', item) })
    case 'delete':
      return command('DELETE', message())
    case 'markRead':
      return command('POST', message('/read'))
    case 'get':
      return one(await callForData(context, message()))
    case 'download':
      return download(context, item)
    case 'checkNumbers': {
      const numbers = of('numbers')
        .split(',')
        .map(number => number.trim())
        .filter(number => number !== '')
      const found = await callForData<IDataObject[]>(context, '/v1/numbers/check', {
        method: 'POST',
        body: { numbers },
      })
      return found.map(json => ({ json }))
    }
    default:
      throw new NodeOperationError(context.getNode(), `Unknown operation: ${of('operation')}`, { itemIndex: item })
  }
}

function one(json: IDataObject): INodeExecutionData[] {
  return [{ json }]
}

async function sendText(context: IExecuteFunctions, item: number, more: IDataObject): Promise<INodeExecutionData[]> {
  const options = context.getNodeParameter('options', item, {}) as SendOptions
  const body = {
    to: textOf(context, 'to', item),
    text: rawTextOf(context, 'text', item),
    ...more,
    ...shared(context, item, options),
  }
  return once(context, item, { method: 'POST', path: '/v1/messages/text', body }, options)
}

async function sendFile(context: IExecuteFunctions, item: number): Promise<INodeExecutionData[]> {
  const options = context.getNodeParameter('options', item, {}) as SendOptions
  const { caption, filename, as } = options
  const body = {
    to: textOf(context, 'to', item),
    media: await fileOf(context, item),
    ...(caption && { caption: String(caption) }),
    ...(filename && { filename: String(filename) }),
    ...(as && { as }),
    ...shared(context, item, options),
  }
  return once(context, item, { method: 'POST', path: '/v1/messages/media', body }, options)
}

/** The value of `media`. The same content gets the same ID again, so a repeated upload does not change the message. */
async function fileOf(context: IExecuteFunctions, item: number): Promise<string | IDataObject> {
  const source = textOf(context, 'source', item)
  if (source === 'media') return textOf(context, 'mediaId', item)
  if (source === 'url') return { url: textOf(context, 'url', item) }
  const property = textOf(context, 'binaryProperty', item)
  const { mimeType, fileName } = context.helpers.assertBinaryData(item, property)
  const bytes = await context.helpers.getBinaryDataBuffer(item, property)
  const answer = (await callPombal(context, '/v1/media', {
    method: 'POST',
    qs: fileName === undefined ? {} : { filename: fileName },
    headers: { 'Content-Type': mimeType || 'application/octet-stream' },
    body: bytes,
    json: false,
  })) as string | { data: { id: string } }
  const { data } = typeof answer === 'string' ? (JSON.parse(answer) as { data: { id: string } }) : answer
  return data.id
}

async function download(context: IExecuteFunctions, item: number): Promise<INodeExecutionData[]> {
  const id = textOf(context, 'mediaId', item)
  const response = (await callPombal(context, `/v1/media/${encodeURIComponent(id)}`, {
    // The file may still be on its way from WhatsApp.
    qs: { wait: 25 },
    json: false,
    encoding: 'arraybuffer',
    returnFullResponse: true,
  })) as { body: ArrayBuffer; headers: Record<string, string | undefined> }
  const name = /filename\*=UTF-8''([^;]+)/.exec(response.headers['content-disposition'] ?? '')?.[1]
  const binary = await context.helpers.prepareBinaryData(
    Buffer.from(response.body),
    name === undefined ? undefined : decodeURIComponent(name),
    response.headers['content-type'],
  )
  return [{ json: { id }, binary: { [textOf(context, 'outputProperty', item)]: binary } }]
}

function shared(context: IExecuteFunctions, item: number, { metadata, sendAt }: SendOptions): IDataObject {
  return {
    ...(sendAt && { sendAt: parseSendAt(context, item, sendAt) }),
    ...(metadata && { metadata: parseMetadata(context, item, metadata) }),
  }
}

/**
 * A time without an offset, as from n8n's date picker, is in the time zone of the workflow.
 * @param sendAt a number is in milliseconds
 */
function parseSendAt(context: IExecuteFunctions, item: number, sendAt: string | number): string {
  try {
    const given = typeof sendAt === 'number' ? new Date(sendAt) : sendAt
    return tryToParseDateTime(given, context.getTimezone()).toJSDate().toISOString()
  } catch {
    throw new NodeOperationError(context.getNode(), `Send At is not a valid date: ${sendAt}`, { itemIndex: item })
  }
}

function parseMetadata(context: IExecuteFunctions, item: number, metadata: string | IDataObject): IDataObject {
  if (typeof metadata !== 'string') return metadata
  try {
    return JSON.parse(metadata) as IDataObject
  } catch {
    throw new NodeOperationError(context.getNode(), 'The metadata is not valid JSON', { itemIndex: item })
  }
}

interface Call {
  method: 'POST' | 'PUT' | 'PATCH' | 'DELETE'
  path: string
  body?: IDataObject
}

/** Makes a call with the user's idempotency key, or else a generated one, so that a retry of this node does nothing twice. */
async function once(
  context: IExecuteFunctions,
  item: number,
  call: Call,
  { idempotencyKey }: SendOptions = {},
): Promise<INodeExecutionData[]> {
  const { path, ...request } = call
  const headers = { 'X-Idempotency-Key': String(idempotencyKey || generateKey(context, item, call)) }
  return one(await callForData(context, path, { ...request, headers }))
}

/** A retry of this node repeats the key. Every other run, node, item and round of a loop has another key. */
function generateKey(context: IExecuteFunctions, item: number, { method, path, body }: Call): string {
  const execution = context.getExecutionId()
  // As a tool of an MCP Server Trigger, the node runs without an execution.
  if (!execution) return `n8n-${randomUUID()}`
  const key = `n8n-${context.getWorkflow().id ?? ''}-${execution}-${context.getNode().id}`
  // For a tool, n8n counts each retry as a round, and starts counting again for each item of the agent.
  if (context.isToolExecution()) {
    const content = JSON.stringify([method, path, body])
    return `${key}-${createHash('sha256').update(content).digest('hex')}`
  }
  return `${key}-${String(context.evaluateExpression('{{ $runIndex }}', item))}-${item}`
}
