import fastifySwagger from '@fastify/swagger'
import Fastify from 'fastify'
import { checkHost, readableTarget } from './addresses.ts'
import { registerAdmin } from './admin/routes.ts'
import { AllowedMethods } from './allowed-methods.ts'
import { createAuditLog } from './audit-log.ts'
import { refuseWhenBusy } from './busy.ts'
import type { Api, ApiContext, ApiOptions } from './context.ts'
import { registerDocs } from './docs.ts'
import { drainOnClose } from './draining.ts'
import { createErrorHandler, unavailable } from './errors.ts'
import { registerHealth } from './health.ts'
import { acceptJsonBodies, MAX_BODY_BYTES } from './json-body.ts'
import { createOneAtATimeServer } from './one-at-a-time.ts'
import { openApiOptions } from './openapi/document.ts'
import { registerPanel } from './panel.ts'
import { answerOddRequests, createClientErrorHandler } from './raw-answers.ts'
import { createRequestIds } from './request-id.ts'
import { createRequestLog } from './request-log.ts'
import { SECURITY_HEADERS } from './security-headers.ts'
import { refuseUnknownPaths } from './unknown-paths.ts'
import { registerV1 } from './v1/routes.ts'
import { compileValidator } from './validation.ts'

/** A whole request must have arrived by then: headers, and body. */
const REQUEST_TIMEOUT_MS = 30_000
const HEADERS_TIMEOUT_MS = 15_000
/** Node looks for those that are too late only now and then, by default every 30 s. */
const LOOK_FOR_LATE_MS = 2_000
const KEEP_ALIVE_MS = 72_000
/** Any path that fits into the headers is a path: what it names need not exist. */
const MAX_PARAM_LENGTH = 65_536

export type { ApiOptions, ApiSettings, ContactMessage } from './context.ts'

/**
 * The HTTP server, not yet listening. It validates, writes rows through the store and answers; it knows no live connection.
 * `close()` refuses what still comes with 503, ends the streams and lets what is in flight finish.
 */
export async function createServer(options: ApiOptions): Promise<Api> {
  const newRequestId = createRequestIds()
  const answerError = createErrorHandler(options.logger)
  const { trustedProxies = [] } = options.settings
  const api: Api = Fastify({
    // Fastify's own lines would cost a child logger per request: `createRequestLog` writes one wide line instead.
    logger: false,
    genReqId: newRequestId,
    trustProxy: trustedProxies.length > 0 && [...trustedProxies],
    bodyLimit: MAX_BODY_BYTES,
    return503OnClosing: false,
    routerOptions: { maxParamLength: MAX_PARAM_LENGTH },
    rewriteUrl: request => readableTarget(request.url ?? '/'),
    serverFactory: handle =>
      createOneAtATimeServer(
        {
          requestTimeout: REQUEST_TIMEOUT_MS,
          headersTimeout: HEADERS_TIMEOUT_MS,
          keepAliveTimeout: KEEP_ALIVE_MS,
          connectionsCheckingInterval: LOOK_FOR_LATE_MS,
          // Node would answer a missing Host without a body: `checkHost` does it in our envelope.
          requireHostHeader: false,
        },
        handle,
      ),
    clientErrorHandler: createClientErrorHandler(newRequestId),
    frameworkErrors: answerError,
  })
  const { isDraining = () => false } = options
  const context: ApiContext = { now: Date.now, ...options, isDraining, closing: drainOnClose(api, isDraining) }
  answerOddRequests(api.server, newRequestId)
  acceptJsonBodies(api)
  api.setValidatorCompiler(compileValidator)
  api.setErrorHandler(answerError)
  api.decorateRequest('instanceId', '')
  api.decorateRequest('refusalCode', '')
  api.decorateRequest('sessionId', '')
  api.decorateRequest('hasKey', false)

  const allowed = new AllowedMethods()
  api.addHook('onRoute', route => {
    if (!route.config?.refusesOnly) allowed.add(route)
  })
  api.addHook('onRequest', (request, reply, done) => {
    reply.headers(SECURITY_HEADERS).header('x-request-id', request.id)
    done(context.closing.aborted ? unavailable() : checkHost(request.raw))
  })
  refuseWhenBusy(api)
  api.addHook('onResponse', createRequestLog(context.logger))
  api.addHook('onResponse', createAuditLog(context.logger))

  await api.register(fastifySwagger, openApiOptions(context))
  refuseUnknownPaths(api, allowed)
  registerV1(api, context, allowed)
  registerAdmin(api, context, allowed)
  registerHealth(api, context)
  registerDocs(api)
  await registerPanel(api, context.panelDir)
  await api.ready()
  return api
}
