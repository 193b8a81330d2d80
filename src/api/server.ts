import fastifySwagger from '@fastify/swagger'
import Fastify from 'fastify'
import { registerAdmin } from './admin/routes.ts'
import { auditOperations } from './audit-log.ts'
import type { Api, ApiContext, ApiOptions } from './context.ts'
import { registerLinkPage } from './handout/link-page.ts'
import { registerHealth } from './health.ts'
import { AllowedMethods } from './http/allowed-methods.ts'
import { createErrorHandler, unavailable } from './http/error-handler.ts'
import { KnownCallers } from './http/limits/known-callers.ts'
import { createOneAtATimeServer } from './http/limits/one-request-per-connection.ts'
import { refuseWhenBusy } from './http/limits/open-request-limits.ts'
import { answerClientError, answerOddRequests } from './http/raw-answers.ts'
import {
  acceptJsonBodies,
  checkHost,
  MAX_BODY_BYTES,
  readableTarget,
  recordAnswers,
  requestIdOf,
} from './http/requests.ts'
import { compileSerializer, compileValidator, refuseUnknownFilters } from './http/schemas.ts'
import { SECURITY_HEADERS } from './http/security-headers.ts'
import { refuseUnknownPaths } from './http/unknown-paths.ts'
import { openApiOptions } from './openapi/document.ts'
import { registerDocs } from './pages/docs.ts'
import { registerPanel } from './pages/panel.ts'
import { registerV1 } from './v1/routes.ts'

/** The time in which a whole request must arrive, headers and body. The body of a file may take longer. */
const REQUEST_TIMEOUT_MS = 30_000
const HEADERS_TIMEOUT_MS = 15_000
/** How often Node checks for late requests. Node's default is 30 s. */
const LATE_CHECK_MS = 2_000
const KEEP_ALIVE_MS = 72_000
/** Accepts any path that fits into the headers, so that a long one is answered with 404. */
const MAX_PARAM_LENGTH = 65_536
const SWEEP_MS = 50
/** How long open requests may take to finish before their connections are closed. */
const DRAIN_MS = 4_000

export type { ApiOptions, ApiSettings, DocumentedSettings } from './context.ts'

/**
 * Creates the HTTP server, which does not listen yet. It validates, writes rows through the store and answers. It has
 * no access to live connections. `close()` refuses new requests with 503, ends streams and lets open requests finish.
 */
export async function createServer(options: ApiOptions): Promise<Api> {
  const answerError = createErrorHandler(options.logger)
  const callers = new KnownCallers()
  const { trustedProxies = [] } = options.settings
  const api: Api = Fastify({
    // Fastify's logging creates a child logger per request. `recordAnswers` writes one line instead.
    logger: false,
    genReqId: requestIdOf,
    trustProxy: trustedProxies.length > 0 && [...trustedProxies],
    bodyLimit: MAX_BODY_BYTES,
    return503OnClosing: false,
    routerOptions: { maxParamLength: MAX_PARAM_LENGTH },
    rewriteUrl: readableTarget,
    serverFactory: handle =>
      createOneAtATimeServer(
        {
          requestTimeout: REQUEST_TIMEOUT_MS,
          headersTimeout: HEADERS_TIMEOUT_MS,
          keepAliveTimeout: KEEP_ALIVE_MS,
          connectionsCheckingInterval: LATE_CHECK_MS,
          // Node answers a missing Host without a body; `checkHost` answers with an error body.
          requireHostHeader: false,
        },
        callers,
        handle,
      ),
    clientErrorHandler: answerClientError,
    frameworkErrors: answerError,
  })
  const { node = { isDraining: false } } = options
  const context: ApiContext = {
    now: Date.now,
    diskSpace: async () => null,
    oidc: null,
    observer: null,
    traces: null,
    ...options,
    node,
    closing: drainOnClose(api, node),
  }
  answerOddRequests(api.server)
  acceptJsonBodies(api, context)
  api.setValidatorCompiler(compileValidator)
  api.setSerializerCompiler(compileSerializer)
  api.setErrorHandler(answerError)
  api.decorateRequest('instanceId', '')
  api.decorateRequest('refusalCode', '')
  api.decorateRequest('messageId', '')
  api.decorateRequest('sessionId', '')
  api.decorateRequest('key', null)
  api.decorateRequest('checkedAt', 0)
  api.decorateRequest('audit', null)
  api.decorateRequest('account', null)
  api.decorateRequest('apiKey', null)

  api.addHook('onRoute', refuseUnknownFilters)
  const allowed = new AllowedMethods()
  api.addHook('onRoute', route => {
    if (!route.config?.refusesOnly) allowed.add(route)
  })
  api.addHook('onRequest', (request, reply, done) => {
    reply.headers(SECURITY_HEADERS).header('x-request-id', request.id)
    done(context.closing.aborted ? unavailable() : checkHost(request.raw))
  })
  refuseWhenBusy(api, callers)
  api.addHook('onResponse', recordAnswers(context))
  auditOperations(api, context.logger)

  await api.register(fastifySwagger, openApiOptions(context))
  registerV1(api, context, allowed)
  registerAdmin(api, context, allowed)
  registerLinkPage(api, context)
  registerHealth(api, context)
  registerDocs(api)
  refuseUnknownPaths(api, allowed, await registerPanel(api, context.panelDir))
  await api.ready()
  return api
}

/**
 * Closes the server without waiting for keep-alive connections: idle connections are closed immediately, the rest after
 * `DRAIN_MS`. (`server.close()` closes only the connections that are idle when it is called.) Answers carry
 * `Connection: close` as soon as the node drains, so that callers do not send another request.
 * @returns a signal that is aborted when the server begins to close
 */
function drainOnClose(api: Api, node: { readonly isDraining: boolean }): AbortSignal {
  const closing = new AbortController()
  let sweep: NodeJS.Timeout | undefined
  let deadline: NodeJS.Timeout | undefined
  api.addHook('preClose', async () => {
    closing.abort()
    sweep = setInterval(() => api.server.closeIdleConnections(), SWEEP_MS)
    deadline = setTimeout(() => api.server.closeAllConnections(), DRAIN_MS)
  })
  api.addHook('onSend', (request, reply, _payload, done) => {
    if (!closing.signal.aborted && !node.isDraining) return done()
    // Decided after a body that came with the headers was read: closing in the middle of a body could lose the answer.
    setImmediate(() => {
      if (request.raw.complete) reply.header('connection', 'close')
      done()
    })
  })
  api.addHook('onClose', async () => {
    clearInterval(sweep)
    clearTimeout(deadline)
  })
  return closing.signal
}
