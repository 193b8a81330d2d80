import {
  type IDataObject,
  type IHookFunctions,
  type INodeType,
  type INodeTypeDescription,
  type IWebhookFunctions,
  type IWebhookResponseData,
  type JsonObject,
  NodeApiError,
  NodeConnectionTypes,
} from 'n8n-workflow'
import { describeEndpoint } from '../shared/endpoint-description'
import { EVENTS_PROPERTY } from '../shared/event-kinds'
import { CREDENTIALS, callForData, callPombal, statusOf } from '../shared/request'
import { isSigned } from '../shared/signature'

const TEST_EVENT = 'webhook.test'
/**
 * Pombal completes the deliveries of a deleted endpoint, signed with its secret: for about 13 minutes, or longer if it
 * stops.
 */
const FORMER_SECRETS_FOR_MS = 24 * 3_600_000
const MAX_FORMER_SECRETS = 5

interface Endpoint {
  id: string
  url: string
  events: string[]
  secret: string
}

/** The secret of a deleted endpoint. n8n deletes and creates the endpoint each time the workflow is published. */
interface FormerSecret extends IDataObject {
  secret: string
  instanceId: string
  /** Milliseconds since 1970. */
  until: number
}

/** Registers an endpoint for the address of the workflow, and refuses requests that Pombal has not signed. */
export class PombalWebhookTrigger implements INodeType {
  description: INodeTypeDescription = {
    displayName: 'Pombal Webhook Trigger',
    name: 'pombalWebhookTrigger',
    icon: { light: 'file:../Pombal/pombal.svg', dark: 'file:../Pombal/pombal.dark.svg' },
    group: ['trigger'],
    version: 1,
    subtitle: '={{$parameter["events"].join(", ")}}',
    description: 'Starts the workflow with events that Pombal posts. Pombal must be able to reach n8n.',
    defaults: { name: 'Pombal Webhook Trigger' },
    inputs: [],
    outputs: [NodeConnectionTypes.Main],
    credentials: [{ name: CREDENTIALS, required: true }],
    webhooks: [{ name: 'default', httpMethod: 'POST', responseMode: 'onReceived', path: 'webhook' }],
    properties: [EVENTS_PROPERTY],
  }

  webhookMethods = {
    default: {
      async checkExists(this: IHookFunctions): Promise<boolean> {
        const stored = this.getWorkflowStaticData('node')
        if (typeof stored.endpointId !== 'string') return false
        try {
          const instanceId = await findInstance(this)
          // Earlier versions stored no instance.
          if (stored.instanceId !== undefined && stored.instanceId !== instanceId) return false
          const endpoint = await callForData<Endpoint>(this, pathOf(instanceId, stored.endpointId))
          stored.instanceId = instanceId
          // The secret may have been replaced.
          stored.secret = endpoint.secret
          return endpoint.url === this.getNodeWebhookUrl('default') && isSame(endpoint.events, wanted(this))
        } catch (error) {
          if (statusOf(error) === 404) return false
          throw new NodeApiError(this.getNode(), error as JsonObject)
        }
      },

      async create(this: IHookFunctions): Promise<boolean> {
        const stored = this.getWorkflowStaticData('node')
        if (typeof stored.endpointId === 'string') await remove(this, stored)
        const instanceId = await findInstance(this)
        const endpoint = await callForData<Endpoint>(this, pathOf(instanceId), {
          method: 'POST',
          body: {
            url: this.getNodeWebhookUrl('default'),
            events: wanted(this),
            description: describeEndpoint(this.getWorkflow().name),
          },
        })
        stored.instanceId = instanceId
        stored.endpointId = endpoint.id
        stored.secret = endpoint.secret
        return true
      },

      async delete(this: IHookFunctions): Promise<boolean> {
        const stored = this.getWorkflowStaticData('node')
        if (typeof stored.endpointId === 'string') await remove(this, stored)
        return true
      },
    },
  }

  async webhook(this: IWebhookFunctions): Promise<IWebhookResponseData> {
    const headers = this.getHeaderData()
    const { rawBody } = this.getRequestObject()
    const now = Date.now()
    const secrets = acceptedSecrets(this.getWorkflowStaticData('node'), now)
    if (!secrets.some(secret => isSigned(secret, headers, rawBody, now))) {
      this.getResponseObject()
        .status(401)
        .json({ message: 'The request is not signed with the secret of the endpoint.' })
      return { noWebhookResponse: true }
    }
    const body = this.getBodyData()
    if (body.event === TEST_EVENT) return { webhookResponse: 'The endpoint works.' }
    return { workflowData: [[{ json: { id: headers['webhook-id'] as string, ...body } }]] }
  }
}

function formerSecrets(stored: IDataObject, now: number): FormerSecret[] {
  return ((stored.former ?? []) as FormerSecret[]).filter(({ until }) => until > now)
}

/** The secret of the endpoint, and of this node's endpoints of the same instance that were deleted in the last day. */
function acceptedSecrets(stored: IDataObject, now: number): string[] {
  if (typeof stored.secret !== 'string') return []
  const former = formerSecrets(stored, now).filter(({ instanceId }) => instanceId === stored.instanceId)
  return [stored.secret, ...former.map(({ secret }) => secret)]
}

function wanted(context: IHookFunctions): string[] {
  return context.getNodeParameter('events', []) as string[]
}

function isSame(one: readonly string[], other: readonly string[]): boolean {
  return one.length === other.length && one.every(kind => other.includes(kind))
}

async function findInstance(context: IHookFunctions): Promise<string> {
  return (await callForData<{ id: string }>(context, '/v1/instance')).id
}

function pathOf(instanceId: string, endpointId?: string): string {
  return `/v1/webhooks/${instanceId}/endpoints${endpointId === undefined ? '' : `/${endpointId}`}`
}

/** The credential may be of another instance by now. Its token cannot delete an endpoint of the previous instance. */
async function remove(context: IHookFunctions, stored: IDataObject): Promise<void> {
  const endpointId = stored.endpointId as string
  try {
    const current = await findInstance(context)
    // Earlier versions stored no instance.
    stored.instanceId ??= current
    if (stored.instanceId === current) await callPombal(context, pathOf(current, endpointId), { method: 'DELETE' })
    else
      context.logger.warn(
        `Delete the endpoint ${endpointId} of the instance ${stored.instanceId as string} in Pombal: it is no longer used.`,
      )
  } catch (error) {
    if (statusOf(error) !== 404) throw new NodeApiError(context.getNode(), error as JsonObject)
  }
  keepSecret(stored, Date.now())
  delete stored.instanceId
  delete stored.endpointId
  delete stored.secret
}

function keepSecret(stored: IDataObject, now: number): void {
  const { secret, instanceId } = stored
  if (typeof secret !== 'string' || typeof instanceId !== 'string') return
  const newest: FormerSecret = { secret, instanceId, until: now + FORMER_SECRETS_FOR_MS }
  stored.former = [newest, ...formerSecrets(stored, now)].slice(0, MAX_FORMER_SECRETS)
}
