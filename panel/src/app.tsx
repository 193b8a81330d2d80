import { localStorageColorSchemeManager, MantineProvider } from '@mantine/core'
import { MutationCache, QueryCache, QueryClient, QueryClientProvider } from '@tanstack/react-query'
import { RouterProvider } from '@tanstack/react-router'
import { ApiError } from './api/client.ts'
import { followSignIns } from './api/other-tabs.ts'
import { sessionQuery } from './api/queries.ts'
import { ToastProvider } from './components/feedback/toasts.tsx'
import { type FirstWords, LanguageProvider } from './i18n/i18n.tsx'
import { createPanelRouter } from './router.tsx'
import { theme } from './theme.ts'

const MAX_RETRIES = 4
const colorSchemes = localStorageColorSchemeManager({ key: 'pombal.colours' })

const queryClient: QueryClient = new QueryClient({
  queryCache: new QueryCache({ onError: error => onError(error) }),
  mutationCache: new MutationCache({ onError: error => onError(error) }),
  defaultOptions: {
    // Otherwise a browser that considers itself offline would delay the request that a click triggers.
    mutations: { networkMode: 'always' },
    queries: {
      networkMode: 'always',
      // The service reports changes, so reading again on focus is unnecessary.
      refetchOnWindowFocus: false,
      staleTime: 60_000,
      retry: (failures, error) => failures < MAX_RETRIES && error instanceof ApiError && isTemporary(error),
    },
  },
})
const router = createPanelRouter(queryClient)
followSignIns(queryClient)

function isTemporary({ code }: ApiError): boolean {
  return code === 'unreachable' || code === 'service_unavailable'
}

/** Leads to the sign-in page when the session has ended. */
function onError(error: unknown): void {
  if (!(error instanceof ApiError) || error.code !== 'invalid_admin_key') return
  // A visitor who has not signed in yet is redirected by the route.
  if (queryClient.getQueryData(sessionQuery.queryKey) === undefined) return
  const { pathname, href } = router.state.location
  if (pathname === '/sign-in') return
  void router.navigate({ to: '/sign-in', search: { from: href, ended: true }, replace: true })
}

export function App({ nonce, firstWords }: { nonce: string; firstWords: FirstWords }) {
  return (
    <MantineProvider
      theme={theme}
      defaultColorScheme="auto"
      colorSchemeManager={colorSchemes}
      getStyleNonce={() => nonce}
    >
      <QueryClientProvider client={queryClient}>
        <LanguageProvider first={firstWords}>
          <ToastProvider>
            <RouterProvider router={router} />
          </ToastProvider>
        </LanguageProvider>
      </QueryClientProvider>
    </MantineProvider>
  )
}
