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
} from 'n8n-workflow'
import { CREDENTIALS, callForData, callPombal } from '../shared/request'
import { properties } from './properties'

interface SendOptions {
  caption?: string
  filename?: string
  idempotencyKey?: string
  metadata?: string | IDataObject
  sendAt?: string
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
          // n8n's constructor returns an error of its own as it is.
          throw new NodeApiError(this.getNode(), error as JsonObject, { itemIndex: item })
        }
        results.push({ json: { error: (error as Error).message }, pairedItem: { item } })
      }
    }
    return [results]
  }
}

async function run(context: IExecuteFunctions, item: number): Promise<INodeExecutionData[]> {
  const of = (name: string) => context.getNodeParameter(name, item) as string
  const message = (action = '') => `/v1/messages/${encodeURIComponent(of('messageId').trim())}${action}`
  const command = async (method: 'POST' | 'PUT' | 'PATCH' | 'DELETE', path: string, body?: IDataObject) =>
    one(await callForData(context, path, { method, headers: keyOf(context, item), ...(body && { body }) }))
  switch (of('operation')) {
    case 'sendText':
      return sendText(context, item, {})
    case 'reply':
      return sendText(context, item, { quote: of('messageId').trim() })
    case 'sendFile':
      return sendFile(context, item)
    case 'react':
      return of('emoji') === ''
        ? command('DELETE', message('/reaction'))
        : command('PUT', message('/reaction'), { emoji: of('emoji') })
    case 'edit':
      return command('PATCH', message(), { text: of('text') })
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
    to: (context.getNodeParameter('to', item) as string).trim(),
    text: context.getNodeParameter('text', item) as string,
    ...more,
    ...shared(context, item, options),
  }
  const headers = keyOf(context, item, options)
  return one(await callForData(context, '/v1/messages/text', { method: 'POST', headers, body }))
}

async function sendFile(context: IExecuteFunctions, item: number): Promise<INodeExecutionData[]> {
  const options = context.getNodeParameter('options', item, {}) as SendOptions
  const { caption, filename, as } = options
  const body = {
    to: (context.getNodeParameter('to', item) as string).trim(),
    media: await fileOf(context, item),
    ...(caption && { caption }),
    ...(filename && { filename }),
    ...(as && { as }),
    ...shared(context, item, options),
  }
  const headers = keyOf(context, item, options)
  return one(await callForData(context, '/v1/messages/media', { method: 'POST', headers, body }))
}

/** What the message names: the same content gets the same ID again, so a repeated upload does not change the message. */
async function fileOf(context: IExecuteFunctions, item: number): Promise<string | IDataObject> {
  const source = context.getNodeParameter('source', item) as string
  if (source === 'media') return (context.getNodeParameter('mediaId', item) as string).trim()
  if (source === 'url') return { url: (context.getNodeParameter('url', item) as string).trim() }
  const property = context.getNodeParameter('binaryProperty', item) as string
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
  const id = encodeURIComponent((context.getNodeParameter('mediaId', item) as string).trim())
  const response = (await callPombal(context, `/v1/media/${id}`, {
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
  const property = context.getNodeParameter('outputProperty', item) as string
  return [{ json: { id: context.getNodeParameter('mediaId', item) as string }, binary: { [property]: binary } }]
}

function shared(context: IExecuteFunctions, item: number, { metadata, sendAt }: SendOptions): IDataObject {
  return {
    ...(sendAt && { sendAt: new Date(sendAt).toISOString() }),
    ...(metadata && { metadata: parseMetadata(context, item, metadata) }),
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

/** Without a key of the user, one that a retry of this node repeats, and no other run, node, item or round of a loop has. */
function keyOf(context: IExecuteFunctions, item: number, { idempotencyKey }: SendOptions = {}): IDataObject {
  const round = String(context.evaluateExpression('{{ $runIndex }}', item))
  const made = `n8n-${context.getWorkflow().id ?? ''}-${context.getExecutionId()}-${context.getNode().id}-${round}-${item}`
  return { 'X-Idempotency-Key': idempotencyKey || made }
}
