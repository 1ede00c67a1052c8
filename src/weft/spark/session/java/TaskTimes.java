package weft;

import java.util.Properties;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.spark.scheduler.SparkListener;
import org.apache.spark.scheduler.SparkListenerStageSubmitted;
import org.apache.spark.scheduler.SparkListenerTaskEnd;

/** What the tasks of each streaming query have taken so far, by the name that the description of their jobs begins with. */
public class TaskTimes extends SparkListener {
    private static final int STAGES_KEPT = 4096;
    private final ConcurrentHashMap names = new ConcurrentHashMap();
    private final ConcurrentHashMap took = new ConcurrentHashMap();

    public void onStageSubmitted(SparkListenerStageSubmitted event) {
        Properties told = event.properties();
        String described = told == null ? null : told.getProperty("spark.job.description");
        int end = described == null ? -1 : described.indexOf('\n');
        if (end > 0) {
            int stage = event.stageInfo().stageId();
            names.put(Integer.valueOf(stage), described.substring(0, end));
            names.remove(Integer.valueOf(stage - STAGES_KEPT));
        }
    }

    public void onTaskEnd(SparkListenerTaskEnd event) {
        Object name = names.get(Integer.valueOf(event.stageId()));
        if (name != null && event.taskMetrics() != null) {
            took.put(name, Long.valueOf(ms((String) name) + event.taskMetrics().executorRunTime()));
        }
    }

    public long ms(String name) {
        Object found = took.get(name);
        return found == null ? 0L : ((Long) found).longValue();
    }
}
