from p4gen.lab.job import LabJob
from p4gen.lab.network import Network
import time, subprocess
def work(job, outer):
    t=time.time()
    n=Network(job.topology); n.build()
    print("net", time.time()-t, outer)
    subprocess.run(["ip","-br","link"])
    subprocess.run([*n.inside("h0"),"ip","-br", "link"])
    n.set_link("s1","s0", up=False)
    subprocess.run(["ip","-br","link"])
    time.sleep(3)
    return 0, {"x":1}
