import type { FastifyDynamicSwaggerOptions } from '@fastify/swagger'
import type { Scope } from '../../domain/access.ts'
import type { RefusalCode } from '../../domain/refusal.ts'
import type { ApiContext, DocumentedSettings } from '../context.ts'
import { webhookOperations } from './event-bodies.ts'
import { HEADERS, headersOf } from './headers.ts'
import { errorSchema, refusalResponses } from './refusals.ts'
import { hoistTitledSchemas } from './titled-schemas.ts'

const describe = ({ ratePerMinute }: DocumentedSettings) => `
Pombal sends WhatsApp messages through linked numbers and posts signed events about them to webhooks.

**Calls** under \`/v1\` carry the API token of an instance: \`Authorization: Bearer pmb_…\`, or one of its API keys, which are
limited to scopes. Calls under \`/admin/v1\` carry the admin key. Success is \`{"data": …}\`. An error is \`{"error": {"code", "message", "details"?, "requestId"}}\`; programs should branch on \`code\`.

**Checks** run in this order: token (401), rate (429), scope of the key (403), instance in the path (404), body (400), idempotent replay,
connection (422). Under \`/v1\` and \`/admin/v1\` the token or key is checked before an unknown address (404) or method (405)
is reported.

**Rate**: ${ratePerMinute.toLocaleString('en')} calls per instance in each window of 60 s, which opens with the first call. Every call with a
valid token or API key counts, including refused calls. Two adjacent windows can let twice as many calls through within
one minute.

**503** means that the call was refused or that its outcome is unknown. Repeat it with the same \`X-Idempotency-Key\`.
`

const TAGS = [
  { name: 'Messages', description: 'Send messages and read their state. By API token.' },
  { name: 'Directory', description: 'The groups and contacts of the linked number. By API token.' },
  { name: 'Media', description: 'Files that were uploaded or received. By API token.' },
  { name: 'Instance', description: "The token's own instance. By API token." },
  { name: 'Webhook', description: 'The endpoints that receive events. By API token.' },
  { name: 'Feed', description: 'Events for programs that no webhook can reach. By API token.' },
  { name: 'Events', description: "Events that the service posts to an instance's endpoints." },
  { name: 'Instances', description: 'Management. By admin key.' },
  { name: 'API keys', description: 'Further keys of an instance, with scopes and expiry. By admin key.' },
  { name: 'Connection', description: 'Linking a number, and its state. By admin key.' },
  { name: 'Link page', description: 'The calls of the page on which a number is linked. By the secret of the link.' },
  { name: 'Webhooks', description: 'The webhook of any instance. By admin key.' },
  { name: 'Message log', description: 'Messages that were sent. By admin key.' },
  { name: 'Conversations', description: 'Chats in both directions, and what people do in them. By admin key.' },
  { name: 'Event log', description: 'Events, their deliveries and every attempt. By admin key.' },
  { name: 'Sandbox', description: 'Simulated contacts. By admin key.' },
  { name: 'Statistics', description: 'Traffic and deliveries of instances. By admin key.' },
  { name: 'Alerts', description: 'Messages to people when something goes wrong. By admin key, or as an owner.' },
  { name: 'Accounts', description: 'People who can sign in, and what they may do. By admin key, or as an owner.' },
  { name: 'Audit', description: 'Who did what. By admin key.' },
  { name: 'Panel', description: 'Sign-in to the panel, and its live updates.' },
  { name: 'Operation', description: 'Probes for the operator.' },
]

interface Area {
  prefix: string
  security: Record<string, string[]>[]
  refusals: readonly RefusalCode[]
}

const AREAS: readonly Area[] = [
  {
    prefix: '/v1/',
    security: [{ token: [] }],
    refusals: ['invalid_token', 'rate_limit_exceeded', 'internal_error', 'service_unavailable'],
  },
  {
    prefix: '/admin/v1/',
    security: [{ adminKey: [] }],
    refusals: [
      'invalid_admin_key',
      'too_many_attempts',
      'cross_site_request',
      'forbidden',
      'internal_error',
      'service_unavailable',
    ],
  },
  { prefix: '/link/', security: [], refusals: ['internal_error', 'service_unavailable'] },
]
const BODY_REFUSALS: readonly RefusalCode[] = ['invalid_request', 'payload_too_large', 'unsupported_media_type']
const REFUSALS_WITHOUT_AREA: readonly RefusalCode[] = ['service_unavailable']

/** An operation of the document. The `x-` keys carry options of the route, which `finishOperation` removes. */
interface Operation {
  operationId?: string
  responses: Record<string, { headers?: object }>
  requestBody?: { required: boolean }
  'x-refusals'?: readonly RefusalCode[]
  'x-optional-body'?: boolean
  'x-rated'?: boolean
}

/** OpenAPI 3.1, generated from the schemas that validate requests. Adds what the routes have in common. */
export function openApiOptions({ version, settings }: ApiContext): FastifyDynamicSwaggerOptions {
  return {
    openapi: {
      openapi: '3.1.0',
      info: {
        title: 'Pombal',
        version,
        description: describe(settings.documented),
        license: { name: 'MIT', identifier: 'MIT' },
      },
      servers: [{ url: settings.publicUrl?.href.replace(/\/$/, '') ?? '/' }],
      tags: TAGS,
      components: {
        securitySchemes: {
          token: {
            type: 'http',
            scheme: 'bearer',
            description: 'The API token of an instance, or one of its API keys.',
          },
          adminKey: { type: 'http', scheme: 'bearer', description: 'The admin key (`ADMIN_KEY`).' },
        },
      },
    },
    transform: ({ schema, url, route }) => {
      const area = AREAS.find(({ prefix }) => url.startsWith(prefix))
      const { refusals = [], optionalBody, rawBody, scope } = route.config ?? {}
      // A body is read, and refused if it is no JSON object, even if the call takes none.
      const readsBody = route.method !== 'GET' && !rawBody
      const common = [...(area?.refusals ?? REFUSALS_WITHOUT_AREA), ...(readsBody ? BODY_REFUSALS : [])]
      const operation = {
        ...schema,
        security: schema?.security ?? area?.security ?? [],
        'x-refusals': [...refusals, ...common, ...(scope && scope !== 'any' ? (['forbidden'] as const) : [])],
        ...describeScope(schema?.description, scope),
        'x-rated': area?.prefix === '/v1/',
        'x-optional-body': optionalBody === true,
      }
      return { schema: operation, url }
    },
    transformObject: given => finish(given, settings.documented),
  }
}

function describeScope(description: string | undefined, scope: Scope | 'any' | undefined): { description?: string } {
  if (scope === undefined || scope === 'any') return {}
  return { description: [description, `A key needs the scope \`${scope}\`.`].filter(Boolean).join(' ') }
}

function finish(given: object, documented: DocumentedSettings): Record<string, unknown> {
  const { openapiObject } = given as {
    openapiObject: { paths: Record<string, Record<string, Operation>>; components: Record<string, unknown> }
  }
  for (const path of Object.values(openapiObject.paths))
    for (const operation of Object.values(path)) finishOperation(operation)
  const { document, schemas } = hoistTitledSchemas({
    ...openapiObject,
    webhooks: webhookOperations(documented),
    error: errorSchema,
  })
  const { error: _moved, ...rest } = document
  return { ...rest, components: { ...openapiObject.components, schemas, headers: HEADERS } }
}

function finishOperation(operation: Operation): void {
  const { 'x-refusals': refusals = [], 'x-rated': rated = false, 'x-optional-body': optionalBody = false } = operation
  Object.assign(operation.responses, refusalResponses(refusals))
  const call = { operationId: operation.operationId, rated, refusals, servesFile: '206' in operation.responses }
  for (const [status, response] of Object.entries(operation.responses)) response.headers = headersOf(status, call)
  if (operation.requestBody && optionalBody) operation.requestBody.required = false
  delete operation['x-refusals']
  delete operation['x-rated']
  delete operation['x-optional-body']
}
