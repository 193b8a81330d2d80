import { createContext, type ReactNode, useCallback, useContext, useMemo, useState } from 'react'
import classes from './toasts.module.css'

const SHOWN_MS = 4_500

interface Toast {
  id: number
  text: string
  tone: 'good' | 'bad'
}

const ToastContext = createContext<(text: string, tone?: Toast['tone']) => void>(() => {})

/** Confirms an action, for screen readers too, and disappears by itself. */
export function ToastProvider({ children }: { children: ReactNode }) {
  const [toasts, setToasts] = useState<Toast[]>([])
  const say = useCallback((text: string, tone: Toast['tone'] = 'good') => {
    const id = Math.random()
    setToasts(now => [...now, { id, text, tone }])
    setTimeout(() => setToasts(now => now.filter(toast => toast.id !== id)), SHOWN_MS)
  }, [])
  const value = useMemo(() => say, [say])
  return (
    <ToastContext value={value}>
      {children}
      <div className={classes.toasts} role="status" aria-live="polite">
        {toasts.map(toast => (
          <div key={toast.id} className={classes.toast} data-tone={toast.tone}>
            {toast.text}
          </div>
        ))}
      </div>
    </ToastContext>
  )
}

export function useToast() {
  return useContext(ToastContext)
}
